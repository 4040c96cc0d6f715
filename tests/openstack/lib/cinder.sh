# Cinder: two back ends, one in each zone, without storage (python/ferrostack_volumes.py).

cinder_configure() {
    local dir
    dir=$(config_dir cinder)
    mkdir -p "$DATA/cinder/conversion"
    cat >"$dir/cinder.conf" <<X
[DEFAULT]
$(messaging cinder)
my_ip = $IP
host = cinder
osapi_volume_listen = $IP
auth_strategy = keystone
api_paste_config = $PKG/usr/share/cinder-common/api-paste.ini
resource_query_filters_file = $PKG/etc/cinder/resource_filters.json
enabled_backends = fake-az1,fake-az2
storage_availability_zone = az1
default_availability_zone = az1
allow_availability_zone_fallback = True
default_volume_type = standard
glance_api_servers = http://$IP:9292
quota_volumes = 2000
quota_snapshots = 2000
quota_gigabytes = 1000000
image_conversion_dir = $DATA/cinder/conversion
[database]
$(database cinder cinder)
$(cinder_backend az1)
$(cinder_backend az2)
$(credentials nova cinder)
$(service_user cinder)
$(token_check cinder)
$(messaging_sections)
X
}

cinder_backend() {
    cat <<X
[fake-$1]
volume_driver = ferrostack_volumes.PretendedVolumes
volume_backend_name = fake
backend_availability_zone = $1
X
}

cinder_schema() { manage "$BIN/cinder-manage" db sync; }

cinder_api_start() { start_wsgi cinder-api 8776 2 1 "$BIN/cinder-wsgi"; }

cinder_start() {
    start cinder-scheduler "$BIN/cinder-scheduler"
    start cinder-volume "$BIN/cinder-volume"
}
cinder_ready() { await 120 cinder-api answers 8776; }
