import type { X509Certificate } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { checkPath } from '../../host/files/path-walk.ts';
import { chainText, firstCertificate, readChain } from '../certificate/chain.ts';
import {
  diffFiles,
  diffFilesRemoval,
  type FilesBefore,
  filesInBrief,
  joinedDifference,
  lookAtFiles,
  lookAtFilesForRemoval,
  type PlacedFile,
  placeFiles,
  rememberFiles,
  restoreFiles,
  type SeenFiles,
} from '../certificate/placed-files.ts';
import { fileWeight } from '../file-unix/seen.ts';
import { textOf } from '../file-unix/written-file.ts';
import { defineProvider } from '../provider/define-provider.ts';
import type { Difference, Machine } from '../provider/provider.ts';
import { Refused } from './authority.ts';
import { type Found, readFound, requestChanges } from './found.ts';
import { issue, signedIn } from './issue.ts';
import { begunBefore, forgetOrder, nameOf } from './order.ts';

type Declared = ResolvedResource<'certificate-acme'>;

export interface SeenCertificate {
  files: SeenFiles;
  /** Null if no certificate files exist. */
  found: Found | null;
  /** Whether an order was begun and is still stored. */
  hasOrder: boolean;
  /** Whether a removal revokes the certificate. */
  revokes: boolean;
  /** Time of the observation, in milliseconds since the Unix epoch. */
  now: number;
}

const isAbsent = ({ body }: Declared): boolean => body.ensure === 'absent';

/**
 * Returns the files of a certificate, with the names that Certbot gives them. The first one is written last.
 * @param chain null if the files must not exist
 * @param key null to keep the content of the key
 */
function filesOf({ body }: Declared, chain: readonly X509Certificate[] | null, key: string | null): PlacedFile[] {
  const { path, key_mode } = body;
  const text = (from: number, to?: number) => (chain === null ? null : chainText(chain.slice(from, to)));
  return [
    { name: 'fullchain', path: `${path}/fullchain.pem`, text: text(0), mode: '0644' },
    { name: 'certificate', path: `${path}/cert.pem`, text: text(0, 1), mode: '0644' },
    { name: 'chain', path: `${path}/chain.pem`, text: text(1), mode: '0644' },
    {
      ...{ name: 'key', path: `${path}/privkey.pem`, mode: key_mode ?? '0600' },
      text: chain === null ? null : (key ?? ''),
      ...(chain !== null && key === null ? { keepsContent: true } : {}),
    },
  ];
}

const withoutContent = (resource: Declared): PlacedFile[] => filesOf(resource, null, null);

/** Returns the files to observe: with any content, but with the declared owner and group. */
const withAnyContent = (resource: Declared): PlacedFile[] =>
  withoutContent(resource).map((file) => (isAbsent(resource) ? file : { ...file, text: '', keepsContent: true }));

function foundIn(files: SeenFiles): Found | null {
  if (files.every(({ found }) => found.type === 'absent')) return null;
  const [fullchain, , , privateKey] = files.map(textOf);
  return readFound(fullchain ?? '', privateKey ?? '');
}

/** Returns the name of the private file with the fingerprint of the certificate that a removal revokes. */
const issuedName = ({ body }: Declared): string => nameOf('issued', body.path);

function seenIn(resource: Declared, files: SeenFiles, machine: Machine): SeenCertificate {
  const now = machine.clock.now();
  const leaf = firstCertificate(textOf(files[0] as SeenFiles[number]));
  // Anyone may copy the public certificate of another server to the path, and an authority does not revoke an expired
  // certificate.
  const revokes =
    resource.body.revoke === true &&
    leaf !== null &&
    leaf.fingerprint256 === machine.privateFiles.read(issuedName(resource)) &&
    leaf.validToDate.getTime() > now;
  return { files, found: foundIn(files), hasOrder: begunBefore(resource, machine) !== null, revokes, now };
}

/** A text that differs from that of every file, so that all contents count as changed. */
const unknownText = 'to be requested\n';

const forgettingOrder = () => ({
  changes: [{ field: 'order', from: 'begun', to: null }],
  message: 'forgets an order that is no longer needed',
});

function difference(resource: Declared, seen: SeenCertificate, purpose: 'apply' | 'plan' | 'drift'): Difference {
  const { body } = resource;
  const requested = isAbsent(resource) ? null : requestChanges(resource.body, seen.found, seen.now);
  const files = isAbsent(resource)
    ? withoutContent(resource)
    : requested === null
      ? filesOf(resource, readChain(seen.found?.chain ?? ''), null)
      : withoutContent(resource).map((file) => ({ ...file, text: unknownText }));
  const parts = diffFiles(resource, files, seen.files, { purpose });
  const joined = joinedDifference(files, seen.files, parts);
  if (requested === null) {
    // An order and its key remain after the agent was killed or the declaration changed.
    if (joined.action !== 'none' || !seen.hasOrder || purpose === 'drift') return joined;
    return { ...joined, ...forgettingOrder(), action: 'update' };
  }
  const names = body.domains.join(', ').slice(0, 500);
  const isRenewal = seen.found?.chain != null && requested.every(({ field }) => field === 'not_after');
  const host = URL.parse(body.directory)?.host ?? '';
  return {
    action: seen.found === null ? 'create' : 'update',
    changes: requested,
    diff: null,
    ...(joined.awaits === undefined ? {} : { awaits: joined.awaits }),
    message: `${isRenewal ? 'renews the certificate' : 'requests a certificate'} for ${names} from ${host}`,
  };
}

/** A certificate that an authority issues over ACME (RFC 8555), with its private key. */
export const certificateAcme = defineProvider<'certificate-acme', SeenCertificate, FilesBefore>({
  type: 'certificate-acme',
  fields: {
    path: 'text',
    domains: 'list',
    directory: 'text',
    agree_terms: 'boolean',
    email: 'text?',
    eab_key_id: 'text?',
    eab_hmac_key: 'text?',
    webroot: 'text?',
    dns_script: 'text?',
    renew_before: 'integer?',
    key_type: 'text?',
    owner: 'text?',
    group: 'text?',
    key_mode: 'text?',
    revoke: 'boolean?',
    ensure: 'text?',
  },
  // The engine creates and removes the directory as a parent of this file.
  path: ({ body }) => `${body.path}/fullchain.pem`,
  makes: (resource) => withoutContent(resource).map(({ path }) => path),
  watched: (resource) => withoutContent(resource).map(({ path }) => path),

  check(resource) {
    const { path, domains, directory, agree_terms, webroot, dns_script } = resource.body;
    checkPath(path);
    if (webroot != null) checkPath(webroot);
    if (isAbsent(resource)) return;
    if (agree_terms !== true) throw new HostFailure('`agree_terms` must be true');
    if (domains.length === 0) throw new HostFailure('`domains` needs at least one name');
    const url = URL.parse(directory);
    if (url === null) throw new HostFailure('`directory` is not a URL');
    if (url.protocol !== 'https:' && !['127.0.0.1', 'localhost', '[::1]'].includes(url.hostname))
      throw new HostFailure('`directory` must begin with https://');
    if (webroot == null && dns_script == null) throw new HostFailure('`webroot` or `dns_script` is required');
    const wildcard = domains.find((name) => name.startsWith('*.'));
    if (dns_script == null && wildcard !== undefined)
      throw new HostFailure(`${wildcard} can be proved only by DNS: declare \`dns_script\` instead of \`webroot\``);
  },

  observe(resource, _circumstances, machine) {
    return seenIn(resource, lookAtFiles(resource, withAnyContent(resource), machine), machine);
  },

  diff: (resource, seen, { purpose }) => difference(resource, seen, purpose),
  inBrief: ({ files, ...seen }) => JSON.parse(JSON.stringify({ ...seen, files: filesInBrief(files) })),
  weight: ({ files }) => files.reduce((sum, file) => sum + fileWeight(file), 0),

  async remember(resource, seen, _difference, before, machine) {
    const requested = isAbsent(resource) ? null : requestChanges(resource.body, seen.found, seen.now);
    const files =
      requested === null && !isAbsent(resource)
        ? filesOf(resource, readChain(seen.found?.chain ?? ''), null)
        : withoutContent(resource).map((file) => (requested === null ? file : { ...file, text: unknownText }));
    return rememberFiles(resource, files, seen.files, before, machine);
  },

  async apply(resource, seen, _difference, machine) {
    if (isAbsent(resource)) await placeFiles(resource, withoutContent(resource), seen.files, machine);
    else if (requestChanges(resource.body, seen.found, seen.now) === null)
      await placeFiles(resource, filesOf(resource, readChain(seen.found?.chain ?? ''), null), seen.files, machine);
    else {
      const { chain, key } = await issue(resource, machine);
      const fingerprint = chain[0]?.fingerprint256 ?? '';
      if (resource.body.revoke === true) machine.privateFiles.write(issuedName(resource), fingerprint);
      await placeFiles(resource, filesOf(resource, chain, key), seen.files, machine);
    }
    await forgetOrder(resource, machine);
    return {};
  },

  async observeForRemoval(resource, before, machine) {
    return seenIn(resource, await lookAtFilesForRemoval(resource, withoutContent(resource), before, machine), machine);
  },
  diffRemoval(resource, before, { files, hasOrder, revokes }, _circumstances, copies) {
    const removal = diffFilesRemoval(resource, withoutContent(resource), before, files, copies);
    // The first request failed, or the files were deleted by hand.
    if (removal.action === 'none' && hasOrder) return { ...removal, ...forgettingOrder(), action: 'remove' };
    if (removal.action === 'none' || !revokes) return removal;
    return { ...removal, message: ['revokes the certificate', removal.message].filter(Boolean).join('; ') };
  },

  async remove(resource, before, { files, revokes }, _difference, machine) {
    const certificate = firstCertificate(textOf(files[0] as SeenFiles[number]));
    if (revokes && certificate !== null) {
      const authority = await signedIn(resource, machine);
      await authority.revoke(certificate.raw).catch((error: unknown) => {
        if (!(error instanceof Refused) || error.type !== 'alreadyRevoked') throw error;
      });
    }
    await restoreFiles(resource, withoutContent(resource), before, files, machine);
    machine.privateFiles.remove(issuedName(resource));
    await forgetOrder(resource, machine);
    return {};
  },
});
