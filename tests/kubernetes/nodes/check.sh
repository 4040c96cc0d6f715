# Tests the functions of a cluster, each in a step with its time. All objects are in the namespace `check`, which is
# removed.

(($# == 0)) || usage
first 0 >/dev/null || die "no cluster runs: $PROGRAM up"
STATE=$(cd "$STATE" && pwd)
. "$PARTS/check-steps.sh"
# A command may fail where its output is discarded, so failures are reported on the script's original standard error.
exec 3>&2
failed() {
	# In a subshell the failure may be expected: its parent decides.
	((BASH_SUBSHELL == 0)) || return 0
	trap - ERR
	say "failed in: ${step//_/ }, line $1" >&3
	kubectl -n check get pods -o wide >&3 2>&3 || true
	kubectl -n check get events --sort-by=.lastTimestamp 2>/dev/null | tail -n 8 >&3 || true
}
step="removing what an earlier check left"
trap 'failed $LINENO' ERR
# The volume is deleted before its driver: without it the kubelet cannot unmount.
kubectl -n check delete pod with-volume --ignore-not-found --timeout=60s >/dev/null 2>&1
kubectl delete namespace check --ignore-not-found --timeout=60s >/dev/null 2>&1
passed=0
for step in $(declare -F | sed -n 's/^declare -f step_//p' | sort); do
	"step_$step"
	stage "${step//_/ }"
	passed=$((passed + 1))
done
printf '%-50s %7.1f s\n' "all" "$(((${EPOCHREALTIME/./} - began) / 1000))e-3"
say "$passed steps passed"
