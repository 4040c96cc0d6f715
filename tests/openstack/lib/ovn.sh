# OVN's two databases and northd, all real, and a simulated ovn-controller for every simulated hypervisor.

ovn_start() {
    local which port
    mkdir -p "$DATA/ovn"
    for which in nb sb; do
        [[ $which == nb ]] && port=6641 || port=6642
        [[ -e $DATA/ovn/$which.db ]] || ovsdb-tool create "$DATA/ovn/$which.db" "/usr/share/ovn/ovn-$which.ovsschema" || die "creating OVN's database failed"
        start "ovn-$which" ovsdb-server "$DATA/ovn/$which.db" "--remote=ptcp:$port:$IP" "--unixctl=$RUN/ovn-$which.ctl" -vconsole:warn
    done
    await 120 ovn-nb tcp 6641
    await 120 ovn-sb tcp 6642
    ovn-nbctl "--db=tcp:$IP:6641" --no-wait init 2>/dev/null
    ovn-sbctl "--db=tcp:$IP:6642" --no-leader-only init 2>/dev/null
    start ovn-northd ovn-northd "--ovnnb-db=tcp:$IP:6641" "--ovnsb-db=tcp:$IP:6642" "--unixctl=$RUN/ovn-northd.ctl" -vconsole:warn
    local i hosts=()
    for ((i = 1; i <= HOSTS; i++)); do hosts+=("$(host_name "$i"):$(host_zone "$i")"); done
    start chassis /usr/bin/python3 "$HERE/../../crates/deployer/programs/chassis.py" "tcp:$IP:6642" /usr/share/ovn/ovn-sb.ovsschema \
        public:br-ex,physnet1:br-phy "${hosts[@]}"
}

host_name() { echo "cmp$1"; }
host_zone() { echo "az$((($1 - 1) % 2 + 1))"; }
