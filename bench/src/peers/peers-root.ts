import { derivedRoot } from '../../../e2e/hosts/derived-root.ts';
import { peers } from './peers.ts';

// The daemons of the peers are disabled: the bench starts each run. CFEngine uses its vendored apt module.
const finish = `
find "$new/etc/systemd/system" -type l \\( -name 'cf*.service' -o -name 'puppet*.service' \\) -delete
for unit in cfengine3 cf-execd cf-serverd cf-monitord puppet; do ln -sf /dev/null "$new/etc/systemd/system/$unit.service"; done
mkdir -p "$new/var/lib/cfengine3/modules/packages/vendored"
cp "$new"/usr/share/cfengine3/masterfiles/modules/packages/vendored/apt_get.mustache "$new/var/lib/cfengine3/modules/packages/apt_get"
chmod 700 "$new/var/lib/cfengine3/modules/packages/apt_get"
ln -sf /usr/bin/python3 "$new/usr/bin/cfengine-selected-python"
`;

/** The root of the test hosts with the peers installed, so that they do not change this machine. */
export const peersRoot = (): Promise<string> =>
  derivedRoot({ name: 'peers', packages: peers.flatMap((peer) => peer.packages), finish });
