# Daemons: started in separate sessions, identified by pid and start time, and stopped by them.

# The start time (clock ticks after boot) distinguishes a process from a later one with the same pid.
start_time() { awk '{sub(/^.*\) /, ""); print $20}' "/proc/$1/stat" 2>/dev/null; }

alive() {
    local pid at
    read -r pid at 2>/dev/null <"$RUN/$1.pid" && [[ $at && $(start_time "$pid") == "$at" ]]
}

# A clean environment: the services read only the files below $ETC. They find them by HOME: oslo.config looks into
# ~/.nova for nova.conf, ~/.cinder for cinder.conf and so on before it looks into /etc.
CLEAN=(env -i "PATH=$PATH" "HOME=$ETC" LANG=C.UTF-8 PYTHONUNBUFFERED=1 PYTHONWARNINGS=ignore PYTHONDONTWRITEBYTECODE=1 "PYTHONPATH=$HERE/python")

# One `up` or `down` at a time; the lock (descriptor 9) is released when the script ends.
exclusively() {
    exec 9>"$RUN/lock"
    flock -n 9 || die "another tests/openstack/up or down works in $STATE"
}

# start NAME [VARIABLE=value ...] COMMAND ...
start() {
    local name=$1 pid
    shift
    alive "$name" && return 0
    setsid nice -n "$NICE" "${CLEAN[@]}" "$@" >>"$LOG/$name.log" 2>&1 </dev/null 9>&- &
    pid=$!
    printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$RUN/$name.pid"
}

# start_wsgi NAME PORT PROCESSES THREADS SCRIPT [VARIABLE=value ...]
start_wsgi() {
    local name=$1 port=$2 processes=$3 threads=$4 script=$5
    shift 5
    # Connection: close, because this uwsgi router closes connections, but does not announce that in its HTTP/1.1
    # responses.
    start "$name" "$@" uwsgi --plugin python3 --http-socket "$IP:$port" --wsgi-file "$script" --master \
        --processes "$processes" --threads "$threads" --enable-threads --lazy-apps --buffer-size 65535 --listen 100 \
        --die-on-term --no-orphans --need-app --add-header "Connection: close" --disable-logging --log-4xx \
        --hook-master-start "unix_signal:15 gracefully_kill_them_all"
}

# stop NAME [SECONDS]: sends SIGTERM, waits, then kills the whole process group
stop() {
    local name=$1 pid at i
    if alive "$name"; then
        read -r pid at <"$RUN/$name.pid"
        kill -TERM "$pid" 2>/dev/null || true
        for ((i = 0; i < ${2:-5} * 10; i++)); do
            alive "$name" || break
            sleep 0.1
        done
        kill -KILL -- "-$pid" 2>/dev/null || true
    fi
    rm -f "$RUN/$name.pid"
}

# await SECONDS NAME COMMAND ...: waits until the command succeeds; on a timeout reports NAME
await() {
    local limit=$((SECONDS + $1)) name=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        if [[ -e $RUN/$name.pid ]] && ! alive "$name"; then died "$name"; fi
        ((SECONDS < limit)) || die "$name does not answer yet; its log is $LOG/$name.log"
        sleep 0.2
    done
}

died() { die "$1 ended unexpectedly: $(grep -E 'ERROR|CRITICAL|rror:|FATAL' "$LOG/$1.log" 2>/dev/null | tail -1 | cut -c1-300) (log: $LOG/$1.log)"; }

tcp() { (exec 3<>"/dev/tcp/$IP/$1") 2>/dev/null; }

# answers PORT [PATH]: whether there is an HTTP response below 500 within five seconds
answers() {
    timeout 5 bash -c 'exec 3<>"/dev/tcp/$0/$1" && printf "GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n" "$2" "$0" >&3 && read -r -u3 _ status _ && [[ $status -lt 500 ]]' "$IP" "$1" "${2:-}" 2>/dev/null
}
