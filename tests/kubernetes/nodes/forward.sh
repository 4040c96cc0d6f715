# Forwards ports of this host to the same ports of node 1, until `down`.

(($# >= 2)) || usage
listen=$1
shift
first 1 >/dev/null || die "node-1 does not run: $PROGRAM up"
STATE=$(cd "$STATE" && pwd)
for port in "$@"; do
	name=forward-$listen-$port
	runs_on_the_host "$name" && continue
	setsid "$TOOLS/forward" "$listen:$port" "/proc/$(first 0)/ns/net" "$(address 1):$port" >"$STATE/log/$name.log" 2>&1 </dev/null &
	echo "$! $(started $!)" >"$STATE/run/$name"
	until_true 10 "forwarding $listen:$port" "$STATE/log/$name.log" sh -c '[ -n "$(ss -Hltn src "$0")" ]' "$listen:$port"
	runs_on_the_host "$name" || die "$listen:$port cannot be forwarded: $(tail -n 1 "$STATE/log/$name.log")"
done
