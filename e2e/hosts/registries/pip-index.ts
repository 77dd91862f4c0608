// A Python package index on this machine with a few wheels. Usage: node pip-index.ts PORT Below /private/, it requires
// a user and a password, and records in /tmp/pip-leaks which processes expose the user, the password, or the path in
// their arguments or environment.
import { appendFileSync, readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { crc32 } from 'node:zlib';

interface Wheel {
  version: string;
  commands?: readonly string[];
  requires?: readonly string[];
}

/** Versions of each package, oldest first. */
const packages: Readonly<Record<string, readonly Wheel[]>> = {
  tool: [
    { version: '1.0.0', commands: ['tool', 'tool-old'], requires: ['part'] },
    { version: '1.1.0', commands: ['tool', 'tool-old'], requires: ['part'] },
    { version: '2.0.0', commands: ['tool', 'tool-new'] },
  ],
  part: [{ version: '0.9.0' }, { version: '1.0.0' }],
  other: [{ version: '1.0.0', requires: ['part'] }],
  httpie: [{ version: '3.2.2', commands: ['http'], requires: ['part'] }],
  ansible_lint: [{ version: '24.2.0', commands: ['ansible-lint'] }],
  failing: [{ version: '1.0.0' }, { version: '2.0.0', requires: ['nowhere'] }],
};

const credentials = ['ada-u5er', 'pa55-w0rd', 't0ken-in-path'];
const authorization = `Basic ${Buffer.from(`${credentials[0]}:${credentials[1]}`).toString('base64')}`;

const files = new Map<string, Buffer>();
const pages = new Map<string, string>();
for (const [name, wheels] of Object.entries(packages)) {
  const links = wheels.map((wheel) => {
    const file = `${name}-${wheel.version}-py3-none-any.whl`;
    files.set(`/files/${file}`, zipped(wheelOf(name, wheel)));
    return `<a href="/files/${file}">${file}</a>`;
  });
  pages.set(`/simple/${name.replaceAll('_', '-')}/`, `<!DOCTYPE html><html><body>${links.join('\n')}</body></html>`);
}

/** Returns the files of a wheel. Its commands print its version. */
function wheelOf(name: string, { version, commands = [], requires = [] }: Wheel): Record<string, string> {
  const info = `${name}-${version}.dist-info`;
  const content = {
    [`${name}.py`]: `def main():\n    print("${version}")\n`,
    [`${info}/METADATA`]: [
      ...['Metadata-Version: 2.1', `Name: ${name}`, `Version: ${version}`],
      ...requires.map((other) => `Requires-Dist: ${other}`),
      '',
    ].join('\n'),
    [`${info}/WHEEL`]: 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n',
    [`${info}/entry_points.txt`]: `[console_scripts]\n${commands.map((each) => `${each} = ${name}:main\n`).join('')}`,
  };
  const record = [...Object.keys(content), `${info}/RECORD`].map((path) => `${path},,\n`).join('');
  return { ...content, [`${info}/RECORD`]: record };
}

/** Returns an uncompressed ZIP archive. */
function zipped(content: Readonly<Record<string, string>>): Buffer {
  let offset = 0;
  const locals: Buffer[] = [];
  const centrals: Buffer[] = [];
  for (const [path, text] of Object.entries(content)) {
    const name = Buffer.from(path);
    const bytes = Buffer.from(text);
    const common = Buffer.alloc(26);
    common.writeUInt16LE(20, 0);
    // The earliest date that the format can represent.
    common.writeUInt16LE(0x21, 8);
    common.writeUInt32LE(crc32(bytes), 10);
    common.writeUInt32LE(bytes.length, 14);
    common.writeUInt32LE(bytes.length, 18);
    common.writeUInt16LE(name.length, 22);
    const rest = Buffer.alloc(14);
    rest.writeUInt32LE(0o100644 * 0x10000, 6);
    rest.writeUInt32LE(offset, 10);
    const local = Buffer.concat([Buffer.from('PK\x03\x04'), common, name, bytes]);
    locals.push(local);
    centrals.push(Buffer.concat([Buffer.from('PK\x01\x02\x14\x03', 'latin1'), common, rest, name]));
    offset += local.length;
  }
  const central = Buffer.concat(centrals);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 0, 'latin1');
  end.writeUInt16LE(centrals.length, 8);
  end.writeUInt16LE(centrals.length, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...locals, central, end]);
}

function recordLeaks(): void {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name)))
    for (const file of ['cmdline', 'environ'])
      try {
        const text = readFileSync(`/proc/${pid}/${file}`, 'latin1');
        if (credentials.some((secret) => text.includes(secret))) appendFileSync('/tmp/pip-leaks', `${pid} ${file}\n`);
      } catch {
        // The process has ended.
      }
}

createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://index');
  const isPrivate = pathname.startsWith(`/private/${credentials[2]}/`);
  if (isPrivate) {
    recordLeaks();
    appendFileSync('/tmp/pip-private', `${pathname}\n`);
  }
  const path = isPrivate ? pathname.slice(`/private/${credentials[2]}`.length) : pathname;
  const content = files.get(path) ?? pages.get(path);
  const isAllowed = !isPrivate || request.headers.authorization === authorization;
  response.writeHead(!isAllowed ? 401 : content === undefined ? 404 : 200, {
    'content-type': files.has(path) ? 'application/octet-stream' : 'text/html',
    ...(isAllowed ? {} : { 'www-authenticate': 'Basic realm="private"' }),
  });
  response.end(isAllowed ? content : '');
}).listen(Number(process.argv[2]), '127.0.0.1');
