"""The freeze-thaw method: pause and resume trials by a model of their learning curves."""
