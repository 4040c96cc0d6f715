"""cinder-volume and cinder-backup without the rights of root, and imaginary volumes: volumes.py PROGRAM

Cinder runs some commands as root by sudo and a wrapper, which are in no image. None of those that work on files of its own and on
images of RBD needs them.
"""
import importlib
import io
import sys

# What imaginary volumes are as images: an empty disk.
EMPTY = b'\0' * 512


def main(program):
    # First of all of Cinder: it replaces parts of the standard library.
    command = importlib.import_module(f'cinder.cmd.{program.removeprefix("cinder-")}')
    import os_brick.privileged
    from cinder import privsep, utils
    from oslo_privsep.priv_context import PrivContext

    utils.get_root_helper = lambda: 'env'
    for context in [*vars(os_brick.privileged).values(), *vars(privsep).values()]:
        # What a helper would do happens in this process, with its rights.
        if isinstance(context, PrivContext):
            context.set_client_mode(False)
    sys.argv = [program]
    command.main()


def __getattr__(name):
    """The class is made when Cinder asks for it by its name: in the process of the program all of Cinder is loaded by then."""
    if name == 'Imaginary':
        return imaginary()
    raise AttributeError(name)


def imaginary():
    from cinder.volume import driver

    class Imaginary(driver.VolumeDriver):
        """Volumes that are entries in the database: every operation succeeds at once."""

        VERSION = '1.0.0'

        def __init__(self, *arguments, **named):
            super().__init__(*arguments, **named)
            self.backend_name = self.configuration.safe_get('volume_backend_name')

        def do_setup(self, context):
            pass

        def check_for_setup_error(self):
            pass

        def _update_volume_stats(self):
            # The name of the only pool is that of the back end; more is never asked for than there is.
            self._stats = {
                'volume_backend_name': self.backend_name, 'vendor_name': 'Ferrostack', 'driver_version': self.VERSION,
                'storage_protocol': 'fake', 'total_capacity_gb': 'infinite', 'free_capacity_gb': 'infinite',
                'reserved_percentage': 0, 'multiattach': True, 'thin_provisioning_support': True, 'QoS_support': False,
                'consistent_group_snapshot_enabled': True, 'online_extend_support': True,
            }

        def create_volume(self, volume):
            pass

        def create_volume_from_snapshot(self, volume, snapshot):
            pass

        def create_cloned_volume(self, volume, source):
            pass

        def delete_volume(self, volume):
            pass

        def create_snapshot(self, snapshot):
            pass

        def delete_snapshot(self, snapshot):
            pass

        def revert_to_snapshot(self, context, volume, snapshot):
            pass

        def extend_volume(self, volume, size):
            pass

        def retype(self, context, volume, new_type, diff, host):
            return True, {}

        def ensure_export(self, context, volume):
            pass

        def create_export(self, context, volume, connector):
            pass

        def remove_export(self, context, volume):
            pass

        def initialize_connection(self, volume, connector):
            return {'driver_volume_type': 'fake', 'data': {'volume_id': volume.id}}

        def terminate_connection(self, volume, connector, **named):
            pass

        # "Cloned within the back end": otherwise Cinder would convert the image into a file.
        def clone_image(self, context, volume, location, meta, service):
            return {}, True

        def copy_image_to_volume(self, context, volume, service, image, **named):
            pass

        def copy_volume_to_image(self, context, volume, service, meta):
            service.update(context, meta['id'], {}, io.BytesIO(EMPTY))

        def create_group(self, context, group):
            return {'status': 'available'}

        def update_group(self, context, group, add_volumes=None, remove_volumes=None):
            return None, None, None

        def delete_group(self, context, group, volumes):
            return {'status': 'deleted'}, [{'id': it.id, 'status': 'deleted'} for it in volumes]

        def create_group_snapshot(self, context, group_snapshot, snapshots):
            return {'status': 'available'}, [{'id': it.id, 'status': 'available'} for it in snapshots]

        def delete_group_snapshot(self, context, group_snapshot, snapshots):
            return {'status': 'deleted'}, [{'id': it.id, 'status': 'deleted'} for it in snapshots]

    return Imaginary


if __name__ == '__main__':
    main(sys.argv[1])
