# The database of Open vSwitch on a node. It outlives the Pod, with the ports of guests in it.
set -eu
database=/etc/openvswitch/conf.db schema=/usr/share/openvswitch/vswitch.ovsschema
if [ ! -e "$database" ]; then
	rm -f "$database.new" "$database.new.lock"
	ovsdb-tool create "$database.new" "$schema"
	mv "$database.new" "$database"
elif [ "$(ovsdb-tool needs-conversion "$database" "$schema")" = yes ]; then
	ovsdb-tool convert "$database" "$schema"
fi
exec ovsdb-server "$database" --remote=punix:/run/openvswitch/db.sock --unixctl=/run/openvswitch/ovsdb.ctl -vconsole:warn
