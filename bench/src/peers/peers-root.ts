import { derivedRoot } from '../../../e2e/hosts/derived-root.ts';
import { peers } from './peers.ts';

// Disables the peers' daemons, because the bench starts each run. Installs the apt module that CFEngine ships.
const finish = `
find "$new/etc/systemd/system" -type l \\( -name 'cf*.service' -o -name 'puppet*.service' \\) -delete
for unit in cfengine3 cf-execd cf-serverd cf-monitord puppet; do ln -sf /dev/null "$new/etc/systemd/system/$unit.service"; done
mkdir -p "$new/var/lib/cfengine3/modules/packages/vendored"
cp "$new"/usr/share/cfengine3/masterfiles/modules/packages/vendored/apt_get.mustache "$new/var/lib/cfengine3/modules/packages/apt_get"
chmod 700 "$new/var/lib/cfengine3/modules/packages/apt_get"
ln -sf /usr/bin/python3 "$new/usr/bin/cfengine-selected-python"
`;

/** Builds a root for test hosts with the peers installed. */
export const peersRoot = (): Promise<string> =>
  derivedRoot({ name: 'peers', packages: peers.flatMap((peer) => peer.packages), finish });
