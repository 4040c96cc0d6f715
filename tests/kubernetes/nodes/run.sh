# Runs a command on a machine.

(($# >= 2)) || usage
[[ $1 == [0-9] ]] || die "$1: machines are numbers; there are: $(machines | tr '\n' ' ')"
on "$@"
