# MariaDB, with the databases and accounts of all services.

DATABASES="keystone:keystone glance:glance placement:placement nova:nova nova:nova_api nova:nova_cell0 neutron:neutron
 cinder:cinder octavia:octavia"

mariadb_start() {
    local dir=$DATA/mysql
    if [[ ! -e $dir/.complete ]]; then
        rm -rf "$dir"
        mariadb-install-db --no-defaults --user="$USER_NAME" --datadir="$dir" --auth-root-authentication-method=socket \
            --auth-root-socket-user="$USER_NAME" --skip-test-db >"$LOG/mariadb-install.log" 2>&1 || die "creating the database failed: see $LOG/mariadb-install.log"
        touch "$dir/.complete"
    fi
    # Durability is off: after a crash of the machine this cloud can be created again in a minute.
    start mariadb mariadbd --no-defaults --user="$USER_NAME" --datadir="$dir" --socket="$RUN/mysql.sock" --pid-file="$RUN/mysqld.own" \
        --bind-address="$IP" --port=3306 --max-connections=1000 --skip-log-bin --skip-name-resolve --event-scheduler=ON \
        --innodb-flush-log-at-trx-commit=0 --innodb-doublewrite=0 --innodb-buffer-pool-size=512M --innodb-flush-method=O_DIRECT \
        --character-set-server=utf8mb3 --max-allowed-packet=64M --table-open-cache=2000
}

sql() { mariadb --no-defaults -S "$RUN/mysql.sock" -u root "$@"; }

mariadb_ready() {
    await 60 mariadb sql -e 'select 1'
    local entry
    for entry in $DATABASES; do
        echo "CREATE DATABASE IF NOT EXISTS ${entry#*:} CHARACTER SET utf8mb3;"
        echo "CREATE USER IF NOT EXISTS '${entry%:*}'@'$IP' IDENTIFIED BY '$PW'; GRANT ALL ON ${entry#*:}.* TO '${entry%:*}'@'$IP';"
    done | sql || die "creating the databases failed"
}
