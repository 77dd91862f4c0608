#!/bin/sh
# `npm start`: installs what is missing, then runs start.ts, which says what it starts.
cd "$(dirname "$0")/../.." || exit 1
# Whoever only asks how it is typed gets no packages.
for word in "$@"; do
  case $word in
    -h | --help) exec cat tools/start/start-help.txt ;;
  esac
done
. tools/start/install.sh
exec "$node" tools/start/start.ts "$@"
