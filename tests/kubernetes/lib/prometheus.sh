# Prometheus and promtool of Debian's package `prometheus`, unpacked into target/tools: installed, it would start as a service.
# For scripts with $ROOT and die WORDS.

# prometheus_there: sets PROMETHEUS, the directory with both programs.
prometheus_there() {
	local into=$ROOT/target/tools/prometheus part
	PROMETHEUS=$into/usr/bin
	[[ ! -x $PROMETHEUS/promtool || ! -x $PROMETHEUS/prometheus ]] || return 0
	command -v apt-get >/dev/null || die "Debian's package prometheus is needed, and there is no apt-get"
	part=$(mktemp -d)
	(
		# The sandbox user _apt cannot write into a directory of mode 0700.
		chmod 755 "$part" && cd "$part"
		apt-get download prometheus || { apt-get update && apt-get download prometheus; }
	) >"$part/log" 2>&1 || die "Debian's package prometheus cannot be had: $(tail -n 1 "$part/log")"
	dpkg -x "$part"/prometheus_*.deb "$part/root"
	rm -rf "$into"
	mkdir -p "$ROOT/target/tools"
	mv "$part/root" "$into"
	rm -rf "$part"
}
