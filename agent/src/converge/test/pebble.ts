import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createSocket, type Socket } from 'node:dgram';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { httpCall } from '../../host/network/http-get.ts';
import { removeDirectory, temporaryDirectory } from './agent.ts';
import { madeCertificate } from './made-certificates.ts';

/**
 * A real certificate authority for tests: Pebble, the ACME server that Let's Encrypt makes for tests (Debian package
 * `pebble`). It checks proofs over HTTP and DNS. A DNS server of this file sends it to this machine for every name.
 */
export interface Pebble {
  /** URL of the ACME directory. */
  directory: string;
  /** Variables with which an agent trusts the TLS certificate of the authority. */
  environment: Record<string, string>;
  /** The folder that the web server of all names serves; null for one that answers 404. */
  webroot: string | null;
  /** Paths that were requested from the web server. */
  requested: string[];
  /** Returns the status of a certificate: `Valid` or `Revoked`. */
  statusOf(serialNumber: string): Promise<string>;
  /** Stops the authority, which then forgets everything. */
  stop(): Promise<void>;
}

export const hasPebble = (): boolean => spawnSync('sh', ['-c', 'command -v pebble']).status === 0;

/** @param recordsFile lines with the name and the value of TXT records, separated by a space */
export async function startPebble(recordsFile: string | null = null): Promise<Pebble> {
  const folder = temporaryDirectory();
  const authority = await madeCertificate('Test authority of TLS', null, null);
  const own = await madeCertificate('localhost', authority, ['localhost', '127.0.0.1']);
  writeFileSync(`${folder}/ca.pem`, authority.pem);
  writeFileSync(`${folder}/tls.pem`, own.pem);
  writeFileSync(`${folder}/tls.key`, own.key);
  const dns = await startDns(recordsFile);
  const [port, management, tlsPort] = [await freePort(), await freePort(), await freePort()];
  const pebble: Pebble = {
    directory: `https://127.0.0.1:${port}/dir`,
    environment: { SSL_CERT_FILE: `${folder}/ca.pem` },
    webroot: null,
    requested: [],
    async statusOf(serialNumber) {
      const url = `https://127.0.0.1:${management}/cert-status-by-serial/${serialNumber}`;
      const ask = { url, method: 'GET', headers: {}, environment: pebble.environment, limit: 65_536 } as const;
      const { body } = await httpCall({ ...ask, signal: AbortSignal.timeout(60_000) });
      return String(JSON.parse(body.toString()).Status);
    },
    async stop() {
      web.close();
      web.closeAllConnections();
      dns.close();
      await ended(child);
      removeDirectory(folder);
    },
  };
  const web = await serve(() => pebble);
  const config = {
    ...{ listenAddress: `127.0.0.1:${port}`, managementListenAddress: `127.0.0.1:${management}` },
    ...{ certificate: `${folder}/tls.pem`, privateKey: `${folder}/tls.key` },
    ...{ httpPort: (web.address() as AddressInfo).port, tlsPort, ocspResponderURL: '' },
  };
  writeFileSync(`${folder}/config.json`, JSON.stringify({ pebble: config }));
  const child = spawn('pebble', ['-config', `${folder}/config.json`, '-dnsserver', `127.0.0.1:${dns.address().port}`], {
    env: { PATH: process.env.PATH ?? '', PEBBLE_VA_NOSLEEP: '1' },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await new Promise<void>((resolve, reject) => {
    child.once('exit', () => reject(new Error('pebble ended before it listened')));
    child.stdout?.on('data', (piece: Buffer) => {
      if (piece.toString().includes('ACME directory available at')) resolve();
    });
  });
  return pebble;
}

const ended = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve();
    child.once('exit', () => resolve());
    child.kill('SIGKILL');
  });

/** Returns a port that is free now. */
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
  const server = createServer(({ url = '/' }, response) => {
    const { webroot, requested } = pebble();
    requested.push(url);
    const path = `${webroot}${url}`;
    const isFound = webroot !== null && /^[A-Za-z0-9/._-]+$/.test(url) && !url.includes('..') && existsSync(path);
    response.writeHead(isFound ? 200 : 404).end(isFound ? readFileSync(path) : 'no such file');
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server)));
}

const [typeA, typeTxt] = [1, 16];

/** Answers A with this machine, TXT from the file, and everything else with nothing (RFC 1035). */
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
