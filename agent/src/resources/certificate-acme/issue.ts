import { createHash, createPrivateKey, createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { checkChain, expiresSoon, invalidNow, lifetimeOf, readChain } from '../certificate/chain.ts';
import type { Machine } from '../provider/provider.ts';
import { Authority, problemWords, Refused, type Reply } from './authority.ts';
import { challengeType, type Published, publish, toPublish, unpublish } from './challenge.ts';
import { type KeyType, newPrivateKey, signingRequest } from './csr.ts';
import { newAccountKey } from './jws.ts';

/** Requests a certificate. An order that a killed agent began is continued, or dropped. */

type Declared = ResolvedResource<'certificate-acme'>;

export interface Issued {
  chain: X509Certificate[];
  /** The private key in PEM. */
  key: string;
}

/** An order that was begun, as kept in the data directory. */
interface Begun {
  directory: string;
  domains: string[];
  keyType: KeyType;
  /** URL of the order. */
  order: string;
  /** The private key of the certificate in PEM. */
  key: string;
  published: Published[];
}

/** Milliseconds that a request for a certificate may take, without scripts. */
const issueMs = 10 * 60_000;
/** Maximum number of questions about one state. */
const maxPolls = 100;
/** Bounds of the seconds between two questions. */
const [firstPause, longestPause] = [0.5, 15];

export const defaultKeyType: KeyType = 'ecdsa-p256';
export const defaultRenewDays = 30;

const nameOf = (kind: 'account' | 'order', text: string): string =>
  `acme-${kind}-${createHash('sha256').update(text).digest('hex').slice(0, 32)}`;
const orderName = ({ body }: Declared): string => nameOf('order', body.path);

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Returns the authority, with the account key that is kept in the data directory. */
export async function signedIn({ body }: Declared, machine: Machine): Promise<Authority> {
  const name = nameOf('account', body.directory);
  const kept = machine.privateFiles.read(name);
  const key = kept === null ? newAccountKey() : createPrivateKey(kept);
  if (kept === null) machine.privateFiles.write(name, pem(key));
  const authority = new Authority(body.directory, key, machine);
  await authority.signIn(body.email ?? null);
  return authority;
}

function begunBefore(resource: Declared, machine: Machine): Begun | null {
  const kept = machine.privateFiles.read(orderName(resource));
  return kept === null ? null : (JSON.parse(kept) as Begun);
}

/** Forgets an order. Call this after its certificate was placed. */
export const forgetOrder = (resource: Declared, machine: Machine): void =>
  machine.privateFiles.remove(orderName(resource));

/** @throws HostFailure that names the reason */
export async function issue(resource: Declared, machine: Machine): Promise<Issued> {
  const authority = await signedIn(resource, machine);
  const begun = begunBefore(resource, machine);
  if (begun !== null) {
    const continued = await continueOrder(resource, begun, authority, machine);
    if (continued !== null) return continued;
    forgetOrder(resource, machine);
  }
  const { domains, key_type, directory } = resource.body;
  const { location } = await authority.newOrder(domains);
  if (location === null) throw new HostFailure(`${authority.host} accepts the order without a URL of it`);
  const keyType = (key_type ?? defaultKeyType) as KeyType;
  const order: Begun = {
    directory,
    domains,
    keyType,
    order: location,
    key: pem(newPrivateKey(keyType)),
    published: [],
  };
  keep(resource, order, machine);
  return finish(resource, order, authority, machine);
}

const keep = (resource: Declared, order: Begun, machine: Machine): void =>
  machine.privateFiles.write(orderName(resource), JSON.stringify(order));

/** @returns null if the order cannot be used any more */
async function continueOrder(
  resource: Declared,
  order: Begun,
  authority: Authority,
  machine: Machine,
): Promise<Issued | null> {
  await withdraw(resource, order, authority, machine);
  const { directory, domains, key_type } = resource.body;
  const isSame =
    order.directory === directory &&
    order.domains.join(' ') === domains.join(' ') &&
    order.keyType === (key_type ?? defaultKeyType);
  if (!isSame) return null;
  try {
    const issued = await finish(resource, order, authority, machine);
    const days = resource.body.renew_before ?? defaultRenewDays;
    return expiresSoon(lifetimeOf(issued.chain), days, machine.clock.now()) ? null : issued;
  } catch (error) {
    // An authority forgets orders, and does not continue those that failed.
    if (error instanceof Refused && error.type !== 'rateLimited' && error.status < 500) return null;
    if (error instanceof OrderFailed) return null;
    throw error;
  }
}

/** An order that the authority does not continue. */
class OrderFailed extends HostFailure {}

/** Removes published proofs. A failure does not fail the request, because an old proof proves nothing. */
async function withdraw(resource: Declared, order: Begun, { key }: Authority, machine: Machine): Promise<void> {
  for (const published of order.published)
    try {
      await unpublish(resource, published, key, machine);
    } catch (error) {
      if (!(error instanceof HostFailure)) throw error;
      machine.warn(`failed to remove the proof for ${published.domain}: ${error.message}`);
    }
  if (order.published.length > 0) keep(resource, { ...order, published: [] }, machine);
}

async function finish(resource: Declared, order: Begun, authority: Authority, machine: Machine): Promise<Issued> {
  const deadline = machine.clock.monotonic() + issueMs;
  const wait = { deadline, machine };
  const read = () => authority.post('show the order', order.order, null);
  let { answer } = await read();
  if (answer.status === 'pending') {
    await prove(resource, order, authorizationsOf(answer.authorizations, authority, order.domains), authority, wait);
    ({ answer } = await poll(read, ['pending'], 'the order', wait));
  }
  if (answer.status === 'ready') {
    const key = createPrivateKey(order.key);
    const csr = signingRequest(order.domains, key, createPublicKey(key)).toString('base64url');
    await authority.post('make the certificate', authority.urlIn(answer, 'finalize'), { csr });
  }
  if (answer.status === 'ready' || answer.status === 'processing')
    ({ answer } = await poll(read, ['ready', 'processing'], 'the certificate', wait));
  if (answer.status !== 'valid')
    throw new OrderFailed(`${authority.host} does not make the certificate: ${problemWords(answer.error)}`);
  const url = authority.urlIn(answer, 'certificate');
  const { text } = await authority.post('hand over the certificate', url, null, 'application/pem-certificate-chain');
  const chain = checked(text, order, authority.host, machine.clock.now());
  return { chain, key: order.key };
}

/** Checks the certificate that the authority made, because it may be wrong. */
function checked(text: string, { key, domains }: Begun, host: string, now: number): X509Certificate[] {
  try {
    const chain = readChain(text);
    checkChain(chain, createPrivateKey(key), domains);
    const invalid = invalidNow(lifetimeOf(chain), now);
    if (invalid !== null) throw new HostFailure(invalid);
    return chain;
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    throw new OrderFailed(`the certificate that ${host} made is not used: ${error.message}`);
  }
}

function authorizationsOf(value: unknown, authority: Authority, domains: readonly string[]): string[] {
  const urls = Array.isArray(value) ? value : [];
  if (urls.length === 0 || urls.length > domains.length)
    throw new OrderFailed(`${authority.host} asks for ${urls.length} proofs of ${domains.length} names`);
  return urls.map((url) => authority.checkUrl(String(url)));
}

interface Wait {
  /** In milliseconds of the monotonic clock. */
  deadline: number;
  machine: Machine;
}

/** A proof that the authority asks for. */
interface Proof {
  authorization: string;
  /** URL of the challenge. */
  url: string;
  published: Published;
}

/** Proves the control of all names. Publishes all proofs before the authority looks for the first one. */
async function prove(
  resource: Declared,
  order: Begun,
  authorizations: readonly string[],
  authority: Authority,
  wait: Wait,
): Promise<void> {
  const { machine } = wait;
  const proofs: Proof[] = [];
  for (const authorization of authorizations) {
    const proof = await proofOf(resource, authorization, authority);
    if (proof !== null) proofs.push(proof);
  }
  try {
    for (const { published } of proofs) {
      // Recorded first, so that an agent that is killed here removes it later.
      order.published.push(published);
      keep(resource, order, machine);
      await publish(resource, published, authority.key, machine);
    }
    for (const { url } of proofs) await authority.post('look for the proof', url, {});
    for (const { authorization, published } of proofs) {
      const read = () => authority.post('show the proof', authorization, null);
      const { answer } = await poll(read, ['pending', 'processing'], `the proof for ${published.domain}`, wait);
      if (answer.status !== 'valid') throw notProved(resource, published, authority.host, answer.challenges);
    }
  } finally {
    await withdraw(resource, order, authority, machine);
    order.published = [];
  }
}

/** @returns null if the control of the name is proved already */
async function proofOf(resource: Declared, authorization: string, authority: Authority): Promise<Proof | null> {
  const { answer } = await authority.post('show the proof', authorization, null);
  if (answer.status === 'valid') return null;
  const domain = String((answer.identifier as { value?: unknown } | null | undefined)?.value ?? '').toLowerCase();
  if (!resource.body.domains.some((declared) => declared.toLowerCase().replace(/^\*\./, '') === domain))
    throw new OrderFailed(`${authority.host} asks for the proof of a name that was not ordered`);
  const type = challengeType(resource);
  const offered = Array.isArray(answer.challenges) ? answer.challenges.slice(0, 20) : [];
  const challenge = offered.find((one) => one !== null && typeof one === 'object' && one.type === type);
  if (challenge === undefined)
    throw new OrderFailed(
      `${authority.host} offers no ${type} challenge for ${domain}: declare ${type === 'http-01' ? '`dns_script`' : '`webroot`'} instead`,
    );
  const { token } = challenge as { token?: unknown };
  if (typeof token !== 'string' || !/^[A-Za-z0-9_-]{16,200}$/.test(token))
    throw new OrderFailed(`${authority.host} gives a token that is not valid`);
  return { authorization, url: authority.urlIn(challenge, 'url'), published: await toPublish(resource, domain, token) };
}

function notProved(resource: Declared, { domain }: Published, host: string, challenges: unknown): OrderFailed {
  const tried = (Array.isArray(challenges) ? challenges.slice(0, 20) : []).find((one) => one?.error != null);
  const check =
    challengeType(resource) === 'http-01'
      ? `check that http://${domain}/.well-known/acme-challenge/ serves files of ${resource.body.webroot}`
      : `check that \`dns_script\` adds the TXT record _acme-challenge.${domain}, and waits until the name servers have it`;
  return new OrderFailed(`${host} did not find the proof for ${domain}: ${problemWords(tried?.error)}; ${check}`);
}

/** Asks until the status is another one, with bounded pauses. @throws HostFailure if that takes too long */
async function poll(
  read: () => Promise<Reply>,
  unfinished: readonly string[],
  what: string,
  { deadline, machine }: Wait,
): Promise<Reply> {
  let pause = firstPause;
  for (let polls = 0; polls < maxPolls && machine.clock.monotonic() < deadline; polls++) {
    const reply = await read();
    if (!unfinished.includes(String(reply.answer.status))) return reply;
    await sleep(1000 * Math.min(Math.max(reply.retryAfter ?? pause, firstPause), longestPause), machine);
    pause = Math.min(pause * 1.5, longestPause);
  }
  throw new HostFailure(`the certificate authority does not finish ${what}; apply again to continue`);
}

function sleep(ms: number, { clock, stop }: Pick<Machine, 'clock' | 'stop'>): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = () => {
      cancel();
      reject(stop.reason);
    };
    const cancel = clock.after(ms, () => {
      stop.removeEventListener('abort', end);
      resolve();
    });
    stop.addEventListener('abort', end, { once: true });
    if (stop.aborted) end();
  });
}
