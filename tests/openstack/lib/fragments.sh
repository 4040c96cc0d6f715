# Fragments of the configuration files of several services, and their common password.

# Generated once, for all accounts of this cloud. It is only in files of mode 0600 and sent only on 127.0.0.1.
password() {
    [[ -s $STATE/password ]] || openssl rand -hex 12 >"$STATE/password"
    PW=$(<"$STATE/password")
}

database_url() { echo "mysql+pymysql://$1:$PW@$IP:3306/$2?charset=utf8"; }

database() { # of USER NAME
    cat <<X
connection = $(database_url "$1" "$2")
# Six times as many workers as the default pool thinks of share one MariaDB.
max_pool_size = 10
X
}

# [SECTION] with which a service logs in at keystone as USER
credentials() {
    cat <<X
[$1]
auth_type = password
auth_url = http://$IP:5000/v3
project_domain_name = Default
user_domain_name = Default
project_name = service
username = $2
password = $PW
region_name = RegionOne
X
}

# How a service validates the tokens of its callers. Service tokens are required: Debian's builds have the fix of
# CVE-2023-2088, without which nova could not detach volumes.
token_check() {
    credentials keystone_authtoken "$1"
    cat <<X
www_authenticate_uri = http://$IP:5000/v3
memcached_servers = $IP:11211
service_token_roles = service
service_token_roles_required = true
X
}

service_user() {
    credentials service_user "$1"
    echo "send_service_user_token = true"
}

messaging() {
    cat <<X
transport_url = rabbit://guest:guest@$IP:5672/
rpc_response_timeout = 180
state_path = $DATA/$1
use_stderr = True
X
}

messaging_sections() {
    cat <<X
[oslo_concurrency]
lock_path = $DATA/lock
[oslo_messaging_notifications]
driver = noop
[oslo_messaging_rabbit]
# Daemons at a low priority may miss heartbeats for longer than the default allows.
heartbeat_timeout_threshold = 0
X
}

# The directory of a service's configuration, where oslo.config looks for it (see CLEAN).
config_dir() {
    mkdir -p "$ETC/.$1" "$DATA/$1"
    echo "$ETC/.$1"
}
