#!/bin/sh
# Runs a compiler through ccache: compile.sh ROOT COMPILER ARGUMENT…
# Paths below ROOT are hashed relative to it, so that one clone finds what another has built.
set -eu
export CCACHE_BASEDIR="$1" CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=1
shift
case " $* " in
  *" -x c++-header "*) ;;
  *) exec ccache "$@" ;;
esac

# A precompiled header has other bytes each time it is made. ccache knows it by the checksum beside it: of the text
# that it is made of.
"$@"
count=$# output=
while [ "$count" -gt 0 ]; do
  case "$1" in
    -o) output=$2 && shift 2 && count=$((count - 2)) ;;
    -MF | -MT) shift 2 && count=$((count - 2)) ;;
    -MD | -fpch-preprocess) shift && count=$((count - 1)) ;;
    *) set -- "$@" "$1" && shift && count=$((count - 1)) ;;
  esac
done
"$@" -E -P -o "$output.text"
cksum <"$output.text" >"$output.sum"
rm "$output.text"
