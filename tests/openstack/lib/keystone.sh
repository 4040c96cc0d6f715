# Keystone: identity, the catalog.

keystone_configure() {
    local dir
    dir=$(config_dir keystone)
    cat >"$dir/keystone.conf" <<X
[DEFAULT]
use_stderr = True
[database]
$(database keystone keystone)
[token]
provider = fernet
# The default of an hour would end a day's test run in 401.
expiration = 86400
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = $IP:11211
[identity]
# The least that bcrypt takes: 13 ms a token instead of 190 ms. Not for measuring the cost of logging in.
password_hash_rounds = 4
[fernet_tokens]
key_repository = $DATA/keystone/fernet-keys
[fernet_receipts]
# Opened at the start although no receipts are issued here.
key_repository = $DATA/keystone/fernet-keys
[credential]
key_repository = $DATA/keystone/credential-keys
X
}

keystone_schema() { manage keystone-manage db_sync; }

keystone_start() {
    if [[ ! -e $DATA/keystone/.bootstrapped ]]; then
        local log=$LOG/keystone-bootstrap.log
        keystone_keys fernet-keys
        keystone_keys credential-keys
        # The password is passed on standard input, because command lines are readable by all users.
        manage sh -c 'read -r OS_BOOTSTRAP_PASSWORD && export OS_BOOTSTRAP_PASSWORD && exec keystone-manage bootstrap "$@"' - \
            <<<"$PW" >"$log" 2>&1 --bootstrap-region-id RegionOne \
            --bootstrap-admin-url "http://$IP:5000/v3/" --bootstrap-internal-url "http://$IP:5000/v3/" --bootstrap-public-url "http://$IP:5000/v3/" ||
            die "bootstrapping keystone failed: $(tail -1 "$log" | cut -c1-300) (log: $log)"
        touch "$DATA/keystone/.bootstrapped"
    fi
    start_wsgi keystone 5000 2 2 /usr/bin/keystone-wsgi-public "OS_KEYSTONE_CONFIG_DIR=$ETC/.keystone"
    await 60 keystone answers 5000 v3
}

# A staged and a primary key, like those of `keystone-manage fernet_setup`, which takes seconds to load.
keystone_keys() {
    mkdir -p "$DATA/keystone/$1"
    local key
    for key in 0 1; do openssl rand -base64 32 | tr -d '\n' | tr '+/' '-_' >"$DATA/keystone/$1/$key"; done
}
