"""A Cinder back end without storage. Every operation succeeds at once and leaves nothing on disk."""
from cinder.tests import fake_driver


class PretendedVolumes(fake_driver.FakeLoggingVolumeDriver):
    """Upstream's own fake, which logs what it is asked for, plus what it still does for real or not at all."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        # Volume types select a back end by this name, which upstream's fake does not set.
        self.backend_name = self.configuration.safe_get('volume_backend_name') or 'fake'

    def _update_volume_stats(self):
        super()._update_volume_stats()
        # Without it the scheduler finds no back end for the volume type `shared`, and its volumes end in `error`.
        for pool in self._stats['pools']:
            pool['multiattach'] = True

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        # "Cloned within the back end": otherwise Cinder would run qemu-img on a logical volume that does not exist.
        return {}, True

    def copy_image_to_volume(self, context, volume, image_service, image_id, **kwargs):
        pass

    def extend_volume(self, volume, new_size):
        pass

    def revert_to_snapshot(self, context, volume, snapshot):
        pass

    def retype(self, context, volume, new_type, diff, host):
        return True, {}
