# Octavia's API and the agent through which its provider tells the state of load balancers: balancers.sh API…
# The API reaches the agent by sockets, so that both are in one container: when one ends, the other does. At the end of the Pod the
# API answers its requests first, whose outcome is still told.
ending=
octavia-driver-agent &
agent=$!
"$@" &
api=$!
trap 'ending=1; kill -TERM $api' TERM
# A signal interrupts a wait.
ended() { while kill -0 "$1" 2>/dev/null; do wait "$1"; done; }
wait -n $agent $api
kill -TERM $api 2>/dev/null
ended $api
kill -TERM $agent 2>/dev/null
ended $agent
[ "$ending" ]
