# Glance: images, in files.

glance_configure() {
    local dir store=$DATA/glance
    dir=$(config_dir glance)
    mkdir -p "$store"/{images,staging,tasks}
    cat >"$dir/glance-api.conf" <<X
[DEFAULT]
bind_host = $IP
bind_port = 9292
workers = 1
enabled_backends = file:file
node_staging_uri = file://$store/staging
use_stderr = True
[database]
$(database glance glance)
[glance_store]
default_backend = file
[file]
filesystem_store_datadir = $store/images
[os_glance_staging_store]
filesystem_store_datadir = $store/staging
[os_glance_tasks_store]
filesystem_store_datadir = $store/tasks
[paste_deploy]
flavor = keystone
config_file = $PKG/usr/share/glance-common/glance-api-paste.ini
$(token_check glance)
[oslo_concurrency]
lock_path = $DATA/lock
X
}

glance_manage() { manage "$BIN/glance-manage" --config-file "$ETC/.glance/glance-api.conf" "$@"; }
glance_schema() { glance_manage db_sync && glance_manage db_load_metadefs "$PKG/usr/share/glance-common/metadefs"; }

glance_start() { start glance "$BIN/glance-api" --config-file "$ETC/.glance/glance-api.conf"; }
glance_ready() { await 120 glance answers 9292; }
