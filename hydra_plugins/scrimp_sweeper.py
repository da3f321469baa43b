"""Registration of ``hydra/sweeper=scrimp``, where Hydra looks for plugins (`scrimp.integrations.hydra`)."""

from hydra.core.config_store import ConfigStore

from scrimp.integrations import hydra as scrimp_hydra

__all__ = ["ScrimpSweeper"]


class ScrimpSweeper(scrimp_hydra.Sweep):
    """The sweeper under the name by which Hydra instantiates it."""


ConfigStore.instance().store(
    group="hydra/sweeper", name="scrimp", node=scrimp_hydra.SweepSettings, provider="scrimp"
)
