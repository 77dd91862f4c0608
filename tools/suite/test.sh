#!/bin/sh
# `npm test`: installs missing packages, then runs checks and the unit, contract, and end-to-end tests with test.ts.
cd "$(dirname "$0")/../.." || exit 1
. tools/start/install.sh
PATH=$PWD/node_modules/.bin:$PATH
export PATH
exec "$node" tools/suite/test.ts "$@"
