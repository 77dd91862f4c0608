import type { KeyObject } from 'node:crypto';
import type { ResolvedResource } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { writeFileAtomically } from '../../host/files/atomic-write.ts';
import { inspect } from '../../host/files/inspect.ts';
import { PathWalk } from '../../host/files/path-walk.ts';
import { removeDirectory, removeFile } from '../../host/files/remove.ts';
import { endText, lastLine } from '../../host/processes/failure-text.ts';
import type { Machine } from '../provider/provider.ts';
import { runShell } from '../script/script.ts';
import { keyAuthorization, recordValue } from './jws.ts';

/** Publishes the proof that this machine controls a name, and later removes it. */

type Declared = ResolvedResource<'certificate-acme'>;

/** A published proof, as recorded before it is published. */
export interface Published {
  domain: string;
  token: string;
  /** The directory of the web server; null if the proof is a TXT record. */
  webroot: string | null;
  /** The value of the TXT record; null if the proof is a file. */
  record: string | null;
  /** Directories below the webroot that did not exist originally. */
  made: string[];
}

export const challengeType = ({ body }: Declared): 'http-01' | 'dns-01' =>
  body.webroot == null ? 'dns-01' : 'http-01';

const directoriesIn = (webroot: string): string[] => [
  `${webroot}/.well-known`,
  `${webroot}/.well-known/acme-challenge`,
];

/** Uses a separate path walk, so that the directories it creates do not count as created for a resource. */
async function withWalk<T>(action: (walk: PathWalk) => T | Promise<T>): Promise<T> {
  const walk = new PathWalk();
  try {
    return await action(walk);
  } finally {
    walk.close();
  }
}

/** @throws HostFailure if the webroot does not exist */
export async function toPublish({ body }: Declared, domain: string, token: string, key: KeyObject): Promise<Published> {
  const { webroot } = body;
  if (webroot == null) return { domain, token, webroot: null, record: recordValue(token, key), made: [] };
  return withWalk((walk) => {
    if (inspect(walk, webroot, false).type === 'absent')
      throw new HostFailure(
        `there is no directory ${webroot}: declare the directory that the web server serves for ${domain} as \`webroot\``,
      );
    const made = directoriesIn(webroot).filter((path) => inspect(walk, path, false).type === 'absent');
    return { domain, token, webroot, record: null, made };
  });
}

export async function publish(
  resource: Declared,
  { domain, token, webroot, record }: Published,
  key: KeyObject,
  machine: Machine,
): Promise<void> {
  if (webroot === null) return runDnsScript('add', resource, domain, record ?? '', machine);
  const content = { bytes: Buffer.from(keyAuthorization(token, key)) };
  await withWalk((walk) =>
    walk.within(`${directoriesIn(webroot)[1]}/${token}`, 'make', (parent, name) =>
      writeFileAtomically(parent, name, {
        content,
        uid: process.geteuid?.() ?? 0,
        gid: process.getegid?.() ?? 0,
        mode: 0o644,
      }),
    ),
  );
}

export async function unpublish(
  resource: Declared,
  { domain, token, webroot, record, made }: Published,
  machine: Machine,
): Promise<void> {
  if (webroot === null) {
    if (resource.body.dns_script == null)
      throw new HostFailure(`\`dns_script\` is no longer declared; delete the TXT record _acme-challenge.${domain}`);
    return runDnsScript('remove', resource, domain, record ?? '', machine);
  }
  const directories = directoriesIn(webroot);
  await withWalk((walk) => {
    walk.within(`${directories[1]}/${token}`, 'null', (parent, name) => removeFile(parent, name));
    for (const directory of [...directories].reverse())
      if (made.includes(directory)) walk.within(directory, 'null', (parent, name) => removeDirectory(parent, name));
  });
}

async function runDnsScript(
  action: 'add' | 'remove',
  { body, sensitive_fields: sensitive }: Declared,
  domain: string,
  value: string,
  machine: Machine,
): Promise<void> {
  const result = await runShell(body.dns_script ?? '', machine.limits.scriptMs, 4096, machine, {
    ACME_ACTION: action,
    ACME_DOMAIN: domain,
    ACME_RECORD_NAME: `_acme-challenge.${domain}`,
    ACME_RECORD_VALUE: value,
  });
  // The operation continues at the next start of the agent, which removes the record.
  machine.stop.throwIfAborted();
  if (result.exitCode === 0) return;
  const how = result.timedOut ? 'took too long and was stopped' : endText(result);
  const words = sensitive.length > 0 ? '' : lastLine(result.stderr) || lastLine(result.stdout);
  const doing = action === 'add' ? 'adding the record' : 'removing the record';
  throw new HostFailure(
    `\`dns_script\` ${how} when ${doing} _acme-challenge.${domain}${words === '' ? '' : `: ${words}`}`,
  );
}
