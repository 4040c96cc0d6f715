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
            # And none for group types whose snapshots are taken at one moment.
            pool['consistent_group_snapshot_enabled'] = True

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

    def create_group(self, context, group):
        return {'status': 'available'}

    def update_group(self, context, group, add_volumes=None, remove_volumes=None):
        return None, None, None

    def delete_group(self, context, group, volumes):
        return {'status': 'deleted'}, [{'id': volume.id, 'status': 'deleted'} for volume in volumes]

    def create_group_snapshot(self, context, group_snapshot, snapshots):
        return {'status': 'available'}, [{'id': it.id, 'status': 'available'} for it in snapshots]

    def delete_group_snapshot(self, context, group_snapshot, snapshots):
        return {'status': 'deleted'}, [{'id': it.id, 'status': 'deleted'} for it in snapshots]
