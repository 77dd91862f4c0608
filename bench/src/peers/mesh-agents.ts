import { hash, randomBytes, sign } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { TLSSocket } from 'node:tls';
import { WebSocket } from 'ws';
import type { MeshIdentity } from './mesh-identity.ts';

/**
 * Connects simulated agents to MeshCentral. They authenticate as its agents do, then stay idle. Protocol messages begin
 * with a 16-bit message number; source: `meshagent.js` in MeshCentral 1.1.55.
 */

const authenticate = 1;
const certify = 2;
const describe = 3;
const accepted = 4;
/** Size of a SHA-384 hash, and of a nonce, in bytes. */
const hashBytes = 48;
/** The device group of the agents. MeshCentral creates the group for the first agent. */
const group = hash('sha384', 'bench', 'buffer');
/** MeshCentral's type numbers for the Linux x86-64 agent and for servers. */
const linuxAgent = 6;
const serverPlatform = 3;

const short = (value: number): Buffer => Buffer.from([value >> 8, value & 0xff]);
const int = (value: number): Buffer => Buffer.concat([short(value >>> 16), short(value & 0xffff)]);

/** Connects all agents, `atOnce` at a time. Resolves when MeshCentral has accepted all of them. */
export async function connectMeshAgents(
  port: number,
  identities: readonly MeshIdentity[],
  atOnce: number,
): Promise<WebSocket[]> {
  const links: WebSocket[] = [];
  const waiting = identities.values();
  const dialer = async () => {
    for (const identity of waiting) links.push(await connect(port, identity));
  };
  await Promise.all(Array.from({ length: atOnce }, dialer));
  return links;
}

function connect(port: number, { name, key, certificate }: MeshIdentity): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    const link = new WebSocket(`wss://127.0.0.1:${port}/agent.ashx`, { rejectUnauthorized: false });
    const nonce = randomBytes(hashBytes);
    let serverHash = Buffer.alloc(0);
    link.once('upgrade', ({ socket }: IncomingMessage) => {
      serverHash = hash('sha384', (socket as TLSSocket).getPeerCertificate(true).raw, 'buffer');
    });
    link.once('open', () => link.send(Buffer.concat([short(authenticate), serverHash, nonce])));
    link.on('message', (message: Buffer) => {
      const type = message.readUInt16BE(0);
      if (type === authenticate) {
        const serverNonce = message.subarray(2 + hashBytes, 2 + 2 * hashBytes);
        const signature = sign('sha384', Buffer.concat([serverHash, serverNonce, nonce]), key);
        link.send(Buffer.concat([short(certify), short(certificate.length), certificate, signature]));
        const about = [int(1), int(linuxAgent), int(0), int(serverPlatform), group, int(0)];
        link.send(Buffer.concat([short(describe), ...about, short(name.length), Buffer.from(name)]));
      } else if (type === accepted) resolve(link);
    });
    link.once('close', (code) => reject(new Error(`MeshCentral closed the link of ${name} with code ${code}`)));
    link.once('error', reject);
  });
}
