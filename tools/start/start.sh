#!/bin/sh
# `npm start`: installs missing packages, then runs start.ts.
cd "$(dirname "$0")/../.." || exit 1
# A request for help installs no packages.
for word in "$@"; do
  case $word in
    -h | --help) exec cat tools/start/start-help.txt ;;
  esac
done
. tools/start/install.sh
exec "$node" tools/start/start.ts "$@"
