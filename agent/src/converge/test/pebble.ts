import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { EventEmitter } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { request } from 'node:https';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import { removeDirectory, temporaryDirectory } from './agent.ts';
import { madeCertificate } from './made-certificates.ts';

/**
 * A real certificate authority for tests: Pebble, the ACME test server from Let's Encrypt (Debian package `pebble`). It
 * validates challenges over HTTP and DNS. The DNS server in this file resolves every name to this machine.
 */
export interface Pebble {
  /** URL of the ACME directory. */
  directory: string;
  /** Environment variables that make an agent trust the authority's TLS certificate. */
  environment: Record<string, string>;
  /** The directory that the web server for all names serves; null to respond with 404. */
  webroot: string | null;
  /** Called when a file is requested from the web server, before the server responds. */
  beforeAnswer: (() => Promise<void>) | null;
  /** Resolves once the authority has validated another challenge. */
  nextProof(): Promise<void>;
  /** Returns the authority's status for a certificate, such as `Valid` or `Revoked`. */
  statusOf(serialNumber: string): Promise<string>;
  /** Stops the authority, which then loses all of its state. */
  stop(): Promise<void>;
}

export const hasPebble = (): boolean => spawnSync('sh', ['-c', 'command -v pebble']).status === 0;

/**
 * @param recordsFile file with one TXT record per line: the name and the value, separated by a space
 * @param externalAccounts HMAC keys by key identifier; if given, the authority refuses accounts without an external
 *   binding
 */
export async function startPebble(
  recordsFile: string | null = null,
  externalAccounts: Readonly<Record<string, string>> | null = null,
): Promise<Pebble> {
  const folder = temporaryDirectory();
  const authority = await madeCertificate('Test authority of TLS', null, null);
  const own = await madeCertificate('localhost', authority, ['localhost', '127.0.0.1']);
  writeFileSync(`${folder}/ca.pem`, authority.pem);
  writeFileSync(`${folder}/tls.pem`, own.pem);
  writeFileSync(`${folder}/tls.key`, own.key);
  const dns = await startDns(recordsFile);
  const pebble: Pebble = {
    directory: '',
    environment: { SSL_CERT_FILE: `${folder}/ca.pem` },
    webroot: null,
    beforeAnswer: null,
    nextProof: () => new Promise((resolve) => proofs.once('valid', resolve)),
    statusOf: async (serialNumber) =>
      JSON.parse(await get(`${listening.management}/cert-status-by-serial/${serialNumber}`, authority.pem)).Status,
    async stop() {
      web.close();
      web.closeAllConnections();
      dns.close();
      await ended(listening.child);
      removeDirectory(folder);
    },
  };
  const proofs = new EventEmitter();
  const web = await serve(() => pebble);
  const listening = await listen(folder, (web.address() as AddressInfo).port, dns.address().port, externalAccounts);
  pebble.directory = `${listening.url}/dir`;
  let line = '';
  listening.child.stdout?.setEncoding('utf8').on('data', (piece: string) => {
    const lines = (line + piece).split('\n');
    line = lines.pop() ?? '';
    for (const each of lines) if (/authz \S+ set VALID/.test(each)) proofs.emit('valid');
  });
  return pebble;
}

interface Listening {
  child: ChildProcess;
  url: string;
  /** URL of the authority's management interface. */
  management: string;
}

/**
 * Starts the authority. Retries with other ports, because another program may take a free port before the authority
 * listens on it.
 */
async function listen(
  folder: string,
  httpPort: number,
  dnsPort: number,
  externalAccounts: Readonly<Record<string, string>> | null,
): Promise<Listening> {
  for (let attempt = 1; ; attempt++) {
    const [port, management, tlsPort] = [await freePort(), await freePort(), await freePort()];
    const config = {
      ...{ listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${management}` },
      ...{ certificate: `${folder}/tls.pem`, privateKey: `${folder}/tls.key` },
      ...{ httpPort, tlsPort, ocspResponderURL: '' },
      ...(externalAccounts === null
        ? {}
        : { externalAccountBindingRequired: true, externalAccountMACKeys: externalAccounts }),
    };
    writeFileSync(`${folder}/config.json`, JSON.stringify({ pebble: config }));
    const child = spawn('pebble', ['-config', `${folder}/config.json`, '-dnsserver', `127.0.0.1:${dnsPort}`], {
      env: { PATH: process.env.PATH ?? '', PEBBLE_VA_NOSLEEP: '1' },
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    const isListening = await new Promise<boolean>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', () => resolve(false));
      child.stdout?.on('data', (piece: Buffer) => {
        if (piece.toString().includes('ACME directory available at')) resolve(true);
      });
    });
    if (isListening) return { child, url: `https://127.0.0.1:${port}`, management: `https://127.0.0.1:${management}` };
    if (attempt === maxStarts) throw new Error(`pebble exited ${attempt} times before it listened`);
  }
}

const maxStarts = 5;

/** Returns the response body of a server whose certificate this authority signed. */
const get = (url: string, ca: string): Promise<string> =>
  new Promise((resolve, reject) => {
    request(url, { ca, agent: false }, (response) => text(response).then(resolve, reject))
      .once('error', reject)
      .end();
  });

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });

/** Returns a port that is currently free. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createTcpServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}

/** Serves the webroot over HTTP. */
function serve(pebble: () => Pebble): Promise<Server> {
  const server = createServer(async ({ url = '/' }, response) => {
    const { webroot, beforeAnswer } = pebble();
    const path = `${webroot}${url}`;
    const isFound = webroot !== null && /^[A-Za-z0-9/._-]+$/.test(url) && !url.includes('..') && existsSync(path);
    const content = isFound ? readFileSync(path) : 'no such file';
    await beforeAnswer?.();
    response.writeHead(isFound ? 200 : 404).end(content);
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const [typeA, typeTxt] = [1, 16];

/**
 * Responds to A queries with this machine's address, to TXT queries from the file, and to all others with no records
 * (RFC 1035).
 */
function startDns(recordsFile: string | null): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const labels: string[] = [];
    let at = 12;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString('latin1', at + 1, at + 1 + length));
      at += 1 + length;
    }
    const type = query.readUInt16BE(at + 1);
    const question = query.subarray(12, at + 5);
    const records =
      recordsFile !== null && existsSync(recordsFile) ? readFileSync(recordsFile, 'utf8').split('\n') : [];
    const values = records.map((line) => line.split(' ')).filter(([name]) => name === labels.join('.').toLowerCase());
    const data =
      type === typeA
        ? [Buffer.from([127, 0, 0, 1])]
        : type === typeTxt
          ? values.map(([, value = '']) => Buffer.concat([Buffer.from([value.length]), Buffer.from(value)]))
          : [];
    const answers = data.map((bytes) => {
      const head = Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, bytes.length >> 8, bytes.length & 0xff]);
      return Buffer.concat([head, bytes]);
    });
    const header = Buffer.from([query[0] ?? 0, query[1] ?? 0, 0x84, 0, 0, 1, 0, answers.length, 0, 0, 0, 0]);
    socket.send(Buffer.concat([header, question, ...answers]), from.port, from.address);
  });
  return new Promise((resolve) => socket.bind(0, '127.0.0.1', () => resolve(socket)));
}
