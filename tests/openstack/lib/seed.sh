# The initial content of the cloud: python/seed.py, in stages, each idempotent.

seed() {
    manage "STATE=$STATE" "HOSTS=$HOSTS" /usr/bin/python3 "$HERE/python/seed.py" "$1" 2>"$LOG/seed-$1.log" ||
        die "seeding ($1) failed: $(tail -1 "$LOG/seed-$1.log" | cut -c1-300) (log: $LOG/seed-$1.log)"
}
