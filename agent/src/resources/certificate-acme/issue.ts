import { createPrivateKey, createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { readChain } from '../certificate/chain.ts';
import type { Machine } from '../provider/provider.ts';
import { Authority, problemWords, Refused, type Reply, textOf } from './authority.ts';
import { challengeType, type Published, publish, toPublish } from './challenge.ts';
import { type KeyType, newPrivateKey, signingRequest } from './csr.ts';
import { defaultKeyType, readFound, unusable } from './found.ts';
import { newAccountKey } from './jws.ts';
import { type Begun, begunBefore, drop, keep, nameOf, withdraw } from './order.ts';

/** Requests a certificate. Continues or drops an order that a killed agent began. */

type Declared = ResolvedResource<'certificate-acme'>;

export interface Issued {
  chain: X509Certificate[];
  /** The private key in PEM. */
  key: string;
}

/** Maximum number of polls for one status. */
const maxPolls = 100;
/** Minimum and maximum pause between two polls, in seconds. */
const [firstPause, longestPause] = [0.5, 15];

/** Milliseconds after which an order whose certificate cannot be used is repeated. Let’s Encrypt allows five a week. */
const repeatMs = 48 * 60 * 60_000;

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();

/** Returns the authority, with the account key that is kept in the data directory. */
export async function signedIn({ body }: Declared, machine: Machine): Promise<Authority> {
  const { directory, eab_key_id: keyId, eab_hmac_key: hmacKey } = body;
  // Each external account is bound to a separate account.
  const name = nameOf('account', keyId == null ? directory : `${directory} ${keyId}`);
  const kept = machine.privateFiles.read(name);
  const key = kept === null ? newAccountKey() : createPrivateKey(kept);
  if (kept === null) machine.privateFiles.write(name, pem(key));
  const authority = new Authority(directory, key, machine);
  await authority.signIn(body.email ?? null, keyId == null || hmacKey == null ? null : { keyId, hmacKey });
  return authority;
}

/** @throws HostFailure that names the reason */
export async function issue(resource: Declared, machine: Machine): Promise<Issued> {
  const authority = await signedIn(resource, machine);
  const begun = begunBefore(resource, machine);
  if (begun !== null) {
    await withdraw(resource, begun, machine);
    if (await canContinue(resource, begun, authority)) {
      try {
        return await finishOrForget(resource, begun, authority, machine);
      } catch (error) {
        if (!(error instanceof NotUsed && !isFresh(begun, machine))) throw error;
      }
    }
    drop(resource, begun, machine);
  }
  const { domains, key_type, directory } = resource.body;
  const { location } = await authority.newOrder(domains);
  if (location === null) throw new HostFailure(`${authority.host} accepts the order, but does not return its URL`);
  const keyType = (key_type ?? defaultKeyType) as KeyType;
  const key = pem(newPrivateKey(keyType));
  const at = machine.clock.now();
  const order: Begun = { directory, domains, keyType, order: location, key, published: begun?.published ?? [], at };
  keep(resource, order, machine);
  return finishOrForget(resource, order, authority, machine);
}

/** Reports whether an order is for this declaration, and the authority still has it. */
async function canContinue({ body }: Declared, order: Begun, authority: Authority): Promise<boolean> {
  const isSame =
    order.order !== '' &&
    order.directory === body.directory &&
    order.domains.join(' ') === body.domains.join(' ') &&
    order.keyType === (body.key_type ?? defaultKeyType);
  if (!isSame) return false;
  try {
    const { answer } = await authority.post('show the order', order.order, null);
    return answer.status !== 'invalid';
  } catch (error) {
    // Authorities delete old orders. They respond with `unauthorized` to an account that did not create the order.
    if (error instanceof Refused && (isUnknown(error) || error.type === 'unauthorized')) return false;
    throw error;
  }
}

const isUnknown = ({ status, type }: Refused): boolean => status === 404 || type === 'malformed';

/** The authority will not complete the order. */
class OrderFailed extends HostFailure {}

/**
 * The authority issued a certificate that cannot be used. The order is kept, and a later apply reads its certificate
 * again.
 */
class NotUsed extends HostFailure {}

const isFresh = ({ at }: Begun, { clock }: Machine): boolean => Math.abs(clock.now() - at) < repeatMs;

/**
 * Finishes an order, or drops it if it failed. The next apply creates a new one, so that one apply creates at most one
 * order.
 */
async function finishOrForget(
  resource: Declared,
  order: Begun,
  authority: Authority,
  machine: Machine,
): Promise<Issued> {
  try {
    return await finish(resource, order, authority, machine);
  } catch (error) {
    if (error instanceof OrderFailed || (error instanceof Refused && isUnknown(error))) drop(resource, order, machine);
    throw error;
  }
}

async function finish(resource: Declared, order: Begun, authority: Authority, machine: Machine): Promise<Issued> {
  const read = () => authority.post('show the order', order.order, null);
  let { answer } = await read();
  if (answer.status === 'pending') {
    await prove(resource, order, authorizationsOf(answer.authorizations, authority, order.domains), authority, machine);
    ({ answer } = await poll(read, ['pending'], 'the order', authority, machine));
  }
  if (answer.status === 'ready') {
    const key = createPrivateKey(order.key);
    const csr = signingRequest(order.domains, key, createPublicKey(key)).toString('base64url');
    await authority.post('make the certificate', authority.urlIn(answer, 'finalize'), { csr });
  }
  if (answer.status === 'ready' || answer.status === 'processing')
    ({ answer } = await poll(read, ['ready', 'processing'], 'the certificate', authority, machine));
  if (answer.status !== 'valid')
    throw new OrderFailed(`${authority.host} did not issue the certificate: ${problemWords(answer.error)}`);
  const url = authority.urlIn(answer, 'certificate');
  const { text } = await authority.post('hand over the certificate', url, null, 'application/pem-certificate-chain');
  const found = readFound(text, order.key);
  const reason = unusable(resource.body, found, machine.clock.now(), isFresh(order, machine));
  if (reason !== null) throw new NotUsed(`the certificate that ${authority.host} issued is not used: ${reason}`);
  return { chain: readChain(text), key: order.key };
}

function authorizationsOf(value: unknown, authority: Authority, domains: readonly string[]): string[] {
  const urls = Array.isArray(value) ? value : [];
  if (urls.length === 0 || urls.length > domains.length)
    throw new OrderFailed(`${authority.host} asks for ${urls.length} proofs of ${domains.length} names`);
  return urls.map((url) => authority.checkUrl(textOf(url)));
}

/** A proof that the authority requires. */
interface Proof {
  authorization: string;
  /** URL of the challenge. */
  url: string;
  published: Published;
}

/** Proves control of all names. Publishes all proofs before the authority validates the first one. */
async function prove(
  resource: Declared,
  order: Begun,
  authorizations: readonly string[],
  authority: Authority,
  machine: Machine,
): Promise<void> {
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
      await authority.uncounted(() => publish(resource, published, authority.key, machine));
    }
    for (const { url } of proofs) await authority.post('look for the proof', url, {});
    for (const { authorization, published } of proofs) {
      const read = () => authority.post('show the proof', authorization, null);
      const { answer } = await poll(
        read,
        ['pending', 'processing'],
        `the proof for ${published.domain}`,
        authority,
        machine,
      );
      if (answer.status !== 'valid') throw notProved(resource, published, authority.host, answer.challenges);
    }
  } finally {
    await withdraw(resource, order, machine);
  }
}

/** @returns null if control of the name has already been proved */
async function proofOf(resource: Declared, authorization: string, authority: Authority): Promise<Proof | null> {
  const { answer } = await authority.post('show the proof', authorization, null);
  if (answer.status === 'valid') return null;
  const domain = textOf((answer.identifier as { value?: unknown } | null | undefined)?.value).toLowerCase();
  if (!resource.body.domains.some((declared) => declared.toLowerCase().replace(/^\*\./, '') === domain))
    throw new OrderFailed(`${authority.host} requires proof of control of a name that was not ordered`);
  const type = challengeType(resource);
  const offered = Array.isArray(answer.challenges) ? answer.challenges.slice(0, 20) : [];
  const challenge = offered.find((one) => one !== null && typeof one === 'object' && one.type === type);
  if (challenge === undefined)
    throw new OrderFailed(
      `${authority.host} offers no ${type} challenge for ${domain}: declare ${type === 'http-01' ? '`dns_script`' : '`webroot`'} instead`,
    );
  const { token } = challenge as { token?: unknown };
  if (typeof token !== 'string' || !/^[A-Za-z0-9_-]{16,200}$/.test(token))
    throw new OrderFailed(`${authority.host} returned an invalid token`);
  return {
    authorization,
    url: authority.urlIn(challenge, 'url'),
    published: await toPublish(resource, domain, token, authority.key),
  };
}

function notProved(resource: Declared, { domain }: Published, host: string, challenges: unknown): OrderFailed {
  const tried = (Array.isArray(challenges) ? challenges.slice(0, 20) : []).find((one) => one?.error != null);
  const check =
    challengeType(resource) === 'http-01'
      ? `check that http://${domain}/.well-known/acme-challenge/ serves files of ${resource.body.webroot}`
      : `check that \`dns_script\` adds the TXT record _acme-challenge.${domain}, and waits until the name servers have it`;
  return new OrderFailed(`${host} did not find the proof for ${domain}: ${problemWords(tried?.error)}; ${check}`);
}

/** Polls until the status changes, with bounded pauses. @throws HostFailure if that takes too long */
async function poll(
  read: () => Promise<Reply>,
  unfinished: readonly string[],
  what: string,
  authority: Authority,
  machine: Machine,
): Promise<Reply> {
  let pause = firstPause;
  for (let polls = 0; polls < maxPolls && !authority.isLate; polls++) {
    const reply = await read();
    if (!unfinished.includes(textOf(reply.answer.status))) return reply;
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
