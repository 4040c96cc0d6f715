# Checks for failures of the start that can be reported in one line beforehand.

preflight() {
    ((${#STATE} < 80)) || die "the path $STATE is too long: sockets in it must stay under 108 characters; set FERROSTACK_OPENSTACK_DIR to a shorter one"
    [[ $STATE != *[[:space:]]* ]] || die "the path '$STATE' contains a space, which several services cannot read in their configuration; set FERROSTACK_OPENSTACK_DIR"
    ((HOSTS >= 2 && HOSTS <= 50)) || die "FERROSTACK_OPENSTACK_HOSTS must be from 2 to 50, it is $HOSTS"
    mkdir -p "$ETC" "$RUN" "$LOG" "$DATA" "$PKG" 2>/dev/null || die "cannot create $STATE"
    exclusively
    if ! alive mariadb; then memory; fi
    ports_free
}

memory() {
    local available limit used
    available=$(awk '/^MemAvailable:/ {print int($2 / 1024)}' /proc/meminfo)
    # The limit of a container may be lower than the machine's memory.
    if read -r limit 2>/dev/null </sys/fs/cgroup/memory.max && [[ $limit != max ]]; then
        read -r used </sys/fs/cgroup/memory.current
        limit=$(((limit - used) / 1048576))
        ((limit >= available)) || available=$limit
    fi
    ((available >= NEEDED_MB)) || die "too little memory: $available MB available, $NEEDED_MB MB needed (FERROSTACK_OPENSTACK_MEMORY_MB sets another limit)"
}

ports_free() {
    local entry
    for entry in $PORTS; do
        alive "${entry%:*}" && continue
        tcp "${entry#*:}" && die "port ${entry#*:} on $IP, needed by ${entry%:*}, is taken$(owner "${entry#*:}")"
    done
    return 0
}

owner() {
    local who
    who=$(ss -ltnpH "sport = :$1" 2>/dev/null | sed -n 's/.*(("\([^"]*\)",pid=\([0-9]*\).*/\1, pid \2/p' | head -1)
    [[ -z $who ]] || printf ' by %s' "$who"
}
