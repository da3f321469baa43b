# A client of `scrimp serve` in one file; needs the packages curl and jsonlite.
#
#   source("scrimp.R")
#   server <- scrimp("http://127.0.0.1:8400", Sys.getenv("SCRIMP_TOKEN"))
#   server$create("digits", space = list(lr = list(type = "float", low = 1e-5, high = 0.1, log = TRUE)), n_trials = 20)
#   server$run("digits", function(trial) train(trial$params))
#
# Every change carries a key, so a request whose answer was lost is sent again and counts once.

scrimp <- function(url, token, timeout = 60) {
  url <- sub("/+$", "", url)

  # A name that no other request has; it leaves the random seed of the caller alone.
  new_key <- function() paste0(basename(tempfile("")), "-", Sys.getpid(), "-", format(Sys.time(), "%s-%OS6"))

  call <- function(name, body = NULL, query = "") {
    address <- paste0(url, "/api/", name, query)
    headers <- list(authorization = paste("Bearer", token))
    if (!is.null(body)) {
      headers[["idempotency-key"]] <- new_key()
      headers[["content-type"]] <- "application/json"
    }
    deadline <- Sys.time() + timeout
    wait <- 0.05
    repeat {
      handle <- curl::new_handle()
      if (!is.null(body)) {
        curl::handle_setopt(handle, copypostfields = jsonlite::toJSON(body, auto_unbox = TRUE, digits = NA, null = "null", na = "null"))
      }
      curl::handle_setheaders(handle, .list = headers)
      answer <- tryCatch(curl::curl_fetch_memory(address, handle), error = function(lost) lost)
      if (!inherits(answer, "error")) {
        said <- jsonlite::fromJSON(rawToChar(answer$content), simplifyVector = FALSE)
        if (answer$status_code == 200) return(said)
        answer <- simpleError(paste0("scrimp: ", said$message, " (HTTP ", answer$status_code, ")"))
        if (!grepl("HTTP (429|502|503|504)", conditionMessage(answer))) stop(answer)
      }
      if (Sys.time() > deadline) stop(answer)
      Sys.sleep(wait)
      wait <- min(2 * wait, 1)
    }
  }

  ask_for <- function(name, ...) {
    fields <- Filter(Negate(is.null), list(...))
    texts <- vapply(fields, function(value) curl::curl_escape(as.character(value)), "")
    call(name, query = paste0("?", paste0(names(texts), "=", texts, collapse = "&")))
  }

  post <- function(name, ...) call(name, Filter(Negate(is.null), list(...)))

  self <- list(
    studies = function() unlist(call("studies")$names),
    read = function(study, start = 0, count = 100) ask_for("study", study = study, start = start, count = count)$facts,
    front = function(study) ask_for("front", study = study)$facts,
    explain = function(study, trial = NULL) ask_for("explain", study = study, trial = trial)$facts,
    predict = function(study, configs, at = NULL) post("predict", study = study, configs = configs, at = at)$facts,
    create = function(study, ...) invisible(post("create", study = study, ...)),
    advise = function(study, configs, by, why = "")
      invisible(post("advise", study = study, configs = configs, by = by, why = why)),
    enqueue = function(study, params) invisible(post("enqueue", study = study, params = params)),
    delete = function(study) invisible(post("delete", study = study)),
    # -> trials (id, params, attempt, done, budget), state ("run", "wait" or "finished"), reason
    ask = function(study, count = 1, lease = NULL) post("ask", study = study, count = count, lease = lease),
    # -> continue (TRUE or FALSE), status
    report = function(study, trial, step, metrics) {
      post("report", study = study, trial = trial$id, attempt = trial$attempt, step = step, metrics = as.list(metrics))
    },
    # value: a number; or metrics = list(...); or state = "failed"
    tell = function(study, trial, value = NULL, metrics = NULL, state = NULL, message = NULL) {
      if (!is.null(value) && !is.finite(value)) {
        state <- "failed"
        message <- paste("the value is", value)
        value <- NULL
      }
      post("tell", study = study, trial = trial$id, attempt = trial$attempt, value = value, metrics = metrics, state = state, message = message)
    },
    heartbeat = function(study, trial, lease = 60) {
      post("heartbeat", study = study, trial = trial$id, attempt = trial$attempt, lease = lease)
    }
  )

  # Ask and tell until the study is finished; objective(trial) returns a number. R has no threads, so
  # an objective that takes longer than the lease calls server$heartbeat itself.
  self$run <- function(study, objective, lease = 3600) {
    repeat {
      said <- self$ask(study, lease = lease)
      if (said$state == "finished") return(self$read(study, count = 0))
      if (said$state == "wait") {
        Sys.sleep(1)
        next
      }
      trial <- said$trials[[1]]
      value <- tryCatch(objective(trial), error = function(error) error)
      if (inherits(value, "error")) {
        self$tell(study, trial, state = "failed", message = conditionMessage(value))
      } else {
        self$tell(study, trial, value)
      }
    }
  }
  self
}
