# RabbitMQ and its Erlang port mapper.

rabbitmq_start() {
    local dir=$ETC/rabbitmq
    mkdir -p "$dir" "$DATA/rabbitmq" "$LOG/rabbitmq"
    cat >"$dir/rabbitmq.conf" <<X
listeners.tcp.1 = $IP:5672
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 50MB
log.file = false
log.console = true
log.console.level = warning
X
    echo '[].' >"$dir/enabled_plugins"
    # Started here so that `down` stops it; rabbitmq-server would leave its own running.
    start epmd epmd -address "$IP"
    # +sbwt none: its schedulers would otherwise spin while idle. HOME has its cookie.
    start rabbitmq "HOME=$DATA/rabbitmq" "ERL_EPMD_ADDRESS=$IP" RABBITMQ_NODENAME=ferrostack@localhost \
        "RABBITMQ_CONFIG_FILE=$dir/rabbitmq.conf" RABBITMQ_CONF_ENV_FILE=/dev/null "RABBITMQ_ENABLED_PLUGINS_FILE=$dir/enabled_plugins" \
        "RABBITMQ_MNESIA_BASE=$DATA/rabbitmq/mnesia" "RABBITMQ_LOG_BASE=$LOG/rabbitmq" "RABBITMQ_PID_FILE=$RUN/rabbitmq.own" \
        RABBITMQ_DIST_PORT=25672 "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none" \
        /usr/lib/rabbitmq/bin/rabbitmq-server
}

rabbitmq_ready() { await 120 rabbitmq tcp 5672; }
