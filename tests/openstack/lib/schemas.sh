# The services' tables. Their migrations take about 20 seconds on two cores, so the result is stored as a dump, which is
# valid while the installed packages do not change, and loads in about three.

schemas() {
    [[ -e $DATA/.schemas ]] && return 0
    local dump
    dump=$PKG/schemas-$(package_versions).sql
    if [[ -s $dump ]]; then
        sed "s/@PASSWORD@/$PW/g" "$dump" | sql || die "loading $dump failed; remove it and start again"
        say "schemas loaded"
    else
        migrate
        rm -f "$PKG"/schemas-*.sql
        if dump_schemas >"$dump.part"; then mv "$dump.part" "$dump"; else rm -f "$dump.part"; fi
        say "schemas migrated"
    fi
    touch "$DATA/.schemas"
}

package_versions() {
    # shellcheck disable=SC2086
    dpkg-query -W -f '${Package} ${Version}\n' $INSTALL | sha256sum | cut -c1-16
}

# All of them in parallel; the first failure prints its log.
migrate() {
    local service failed=
    local -A jobs=()
    for service in keystone neutron nova cinder glance octavia placement; do
        "${service}_schema" >"$LOG/schema-$service.log" 2>&1 &
        jobs[$service]=$!
    done
    for service in "${!jobs[@]}"; do wait "${jobs[$service]}" || failed+=" $LOG/schema-$service.log"; done
    [[ -z $failed ]] || die "creating tables failed: $(tail -qn1 $failed | tail -1 | cut -c1-300) (log:$failed)"
}

manage() { nice -n "$NICE" "${CLEAN[@]}" "$@"; }

# Debian's mariadb-client-core has no mariadb-dump.
dump_schemas() {
    local entry
    # shellcheck disable=SC2046
    "${CLEAN[@]}" /usr/bin/python3 "$HERE/python/dump.py" "$RUN/mysql.sock" "$STATE/password" $(for entry in $DATABASES; do echo "${entry#*:}"; done)
}
