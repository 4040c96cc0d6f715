# Placement: the free resources of the hypervisors.

placement_configure() {
    local dir
    dir=$(config_dir placement)
    cat >"$dir/placement.conf" <<X
[DEFAULT]
use_stderr = True
[placement_database]
$(database placement placement)
[api]
auth_strategy = keystone
$(token_check placement)
X
}

placement_schema() { manage placement-manage db sync; }

placement_start() { start_wsgi placement 8778 2 1 /usr/bin/placement-api "OS_PLACEMENT_CONFIG_DIR=$ETC/.placement"; }
