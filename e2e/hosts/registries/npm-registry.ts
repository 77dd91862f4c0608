// An npm registry on this machine with a few packages. Usage: node npm-registry.ts PORT
import { createHash } from 'node:crypto';
import { createServer } from 'node:http';
import { gzipSync } from 'node:zlib';

interface Version {
  version: string;
  bin?: Record<string, string>;
  dependencies?: Record<string, string>;
  scripts?: Record<string, string>;
}

const command = '#!/usr/bin/env node\nconsole.log(require("./package.json").version);\n';

/** Versions of each package, oldest first. */
const packages: Readonly<Record<string, readonly Version[]>> = {
  tool: [
    { version: '1.0.0', bin: { tool: 'cli.js', 'tool-old': 'cli.js' }, dependencies: { part: '^1.0.0' } },
    { version: '1.1.0', bin: { tool: 'cli.js', 'tool-old': 'cli.js' }, dependencies: { part: '^1.0.0' } },
    { version: '2.0.0', bin: { tool: 'cli.js', 'tool-new': 'cli.js' } },
  ],
  part: [{ version: '1.0.0' }],
  '@scope/tool': [{ version: '1.0.0', bin: { scoped: 'cli.js' } }, { version: '1.1.0' }],
  typescript: [{ version: '5.4.2', bin: { tsc: 'cli.js' } }],
  failing: [{ version: '1.0.0' }, { version: '2.0.0', scripts: { install: 'exit 7' } }],
};

const port = Number(process.argv[2]);
const pathOf = (name: string, version: string): string => `/${name}/-/${version}.tgz`;
const archives = new Map<string, Buffer>();
const documents = new Map<string, string>();

for (const [name, versions] of Object.entries(packages)) {
  const described = versions.map((version) => {
    const manifest = { name, ...version };
    const archive = packed({ 'package.json': JSON.stringify(manifest), 'cli.js': command });
    archives.set(pathOf(name, version.version), archive);
    const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
    const dist = { integrity, tarball: `http://127.0.0.1:${port}${pathOf(name, version.version)}` };
    return [version.version, { ...manifest, dist, _hasInstallScript: version.scripts !== undefined }] as const;
  });
  const latest = versions.at(-1)?.version;
  documents.set(`/${name}`, JSON.stringify({ name, 'dist-tags': { latest }, versions: Object.fromEntries(described) }));
}

/** Returns a compressed archive in the format ustar, with all files in the directory `package`. */
function packed(files: Readonly<Record<string, string>>): Buffer {
  const blocks = Object.entries(files).flatMap(([path, text]) => {
    const content = Buffer.from(text);
    return [header(`package/${path}`, content.length), content, Buffer.alloc((512 - (content.length % 512)) % 512)];
  });
  return gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]));
}

function header(path: string, size: number): Buffer {
  const block = Buffer.alloc(512);
  const octal = (value: number, digits: number): string => value.toString(8).padStart(digits, '0');
  block.write(path, 0);
  block.write(
    `${octal(0o755, 7)}\0${octal(0, 7)}\0${octal(0, 7)}\0${octal(size, 11)}\0${octal(0, 11)}\0        0`,
    100,
  );
  block.write('ustar\x0000', 257);
  block.write(
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    148,
  );
  return block;
}

createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url ?? '/', 'http://registry').pathname);
  const content = archives.get(path) ?? documents.get(path);
  response.writeHead(content === undefined ? 404 : 200, {
    'content-type': archives.has(path) ? 'application/octet-stream' : 'application/json',
  });
  response.end(content ?? '{"error":"not found"}');
}).listen(port, '127.0.0.1');
