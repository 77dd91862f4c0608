import type { Machine } from '../machine.ts';
import { repositoryInside } from '../machine.ts';

/** Package files on a server that runs on the machine itself. */

const port = 4875;
const log = '/run/file-requests';

export const urlOf = (name: string): string => `http://127.0.0.1:${port}/${name}`;

/** Returns shell text that starts a server for the files in a directory, and waits until it answers. */
export const fileServerUp = (directory: string): string => `
: > ${log}
systemd-run --quiet ${repositoryInside}/node_modules/.bin/node ${repositoryInside}/e2e/hosts/registries/file-server.ts ${port} ${directory} ${log}
for i in $(seq 300); do bash -c ': > /dev/tcp/127.0.0.1/${port}' 2> /dev/null && break; sleep 0.1; done
`;

/** Returns the requests to the server since the last call. */
export const requestsTo = async (machine: Machine): Promise<string[]> =>
  (await machine.sh(`cat ${log}; : > ${log}`)).split('\n').filter(Boolean);

export const sha256On = async (machine: Machine, path: string): Promise<string> =>
  (await machine.sh(`sha256sum ${path}`)).slice(0, 64);

/** Directory of the .deb files. */
export const debs = '/srv/files';

/** Returns shell text that builds `NAME_VERSION.deb`. */
export const buildDeb = (name: string, version: string, fields: Readonly<Record<string, string>> = {}): string => {
  const all = { Package: name, Version: version, Architecture: 'all', ...fields };
  const lines = Object.entries(all).map(([field, value]) => `'${field}: ${value}'`);
  return `
mkdir -p ${debs} /srv/tree/DEBIAN /srv/tree/usr/share/${name}
echo ${version} > /srv/tree/usr/share/${name}/version
printf '%s\\n' ${lines.join(' ')} 'Maintainer: Tests <tests@example.com>' 'Description: made for tests' > /srv/tree/DEBIAN/control
dpkg-deb --build /srv/tree ${debs}/${name}_${version}.deb > /dev/null
rm -r /srv/tree
`;
};
