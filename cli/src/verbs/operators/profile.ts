import type { Context } from '../../context/context.ts';
import {
  createProfile,
  missingProfile,
  type Profile,
  type Profiles,
  readProfiles,
  writeProfiles,
} from '../../context/profile.ts';
import type { Register } from '../../context/verb.ts';
import { usageError } from '../../exit.ts';
import { showFingerprint } from '../../transport/trust.ts';

export const register: Register = (command, act) => {
  command
    .command('create')
    .description('Add an orchestrator under a name; takes --url, --key-file, and --fingerprint')
    .argument('<name>')
    .option('--replace', 'Update an existing profile')
    .option('--use', 'Use it by default; the first profile always becomes the default')
    .addHelpText(
      'after',
      '\nExample:\n  $ muster profile create prod --url https://orchestrator.example:4748 --fingerprint 9F:86:D0:81…',
    )
    .action(act(create));
  command
    .command('update')
    .description('Change a profile; takes --url, --key-file, and --fingerprint')
    .argument('<name>')
    .option('--usual-key', 'Use the default key instead of the profile’s own')
    .option('--rename <name>', 'New name')
    .addHelpText(
      'after',
      '\nExample:\n  $ muster profile update prod --url https://new.example:4748 --fingerprint 9F:86:D0:81…',
    )
    .action(act(update));
  command
    .command('list')
    .description('List profiles')
    .addHelpText('after', '\nExample:\n  $ muster profile list')
    .action(act(list));
  command
    .command('use')
    .description('Use a profile by default')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ muster profile use prod')
    .action(act(use));
  command
    .command('remove')
    .description('Remove a profile; also the certificate of its address unless another profile uses it')
    .argument('<name>')
    .addHelpText('after', '\nExample:\n  $ muster profile remove prod')
    .action(act(remove));
};

async function create(
  context: Context,
  name: string,
  options: { replace?: boolean; use?: boolean },
): Promise<undefined> {
  const { out, env, now } = context;
  const { url, keyFile, fingerprint } = context.options;
  const address = url ?? env.MUSTER_URL;
  if (!address)
    throw usageError(
      'a profile needs an address',
      `For example: muster profile create ${name} --url https://orchestrator.example:4748`,
    );
  const profile = await createProfile(
    env,
    {
      name,
      url: address,
      keyFile: keyFile ?? null,
      fingerprint: fingerprint ?? null,
      replace: options.replace === true,
      use: options.use === true,
    },
    now,
  );
  if (out.json) out.data({ name, ...profile });
  out.print(`Created profile ${name} for ${profile.url}`);
}

async function update(
  context: Context,
  name: string,
  options: { usualKey?: boolean; rename?: string },
): Promise<undefined> {
  const { out, env, now } = context;
  const { url, keyFile, fingerprint } = context.options;
  const { usualKey = false, rename } = options;
  if (usualKey && keyFile !== undefined) throw usageError('--usual-key cannot be combined with --key-file');
  if (url === undefined && keyFile === undefined && fingerprint === undefined && !usualKey && rename === undefined)
    throw usageError(
      'no change was specified',
      'Specify at least one of --url, --key-file, --usual-key, --fingerprint, or --rename.',
    );
  const { profiles, profile } = await known(context, name);
  const next = rename ?? name;
  if (next !== name && profiles.profiles[next])
    throw usageError(`the profile ${next} already exists`, 'List the profiles: muster profile list');
  const changed = await createProfile(
    env,
    {
      name: next,
      url: url ?? profile.url,
      keyFile: usualKey ? null : (keyFile ?? profile.key_file),
      fingerprint: fingerprint ?? null,
      replace: true,
      use: profiles.current === name,
    },
    now,
  );
  // Removes the certificate of an address if no profile uses the address anymore.
  const after = await readProfiles(env);
  if (next !== name) delete after.profiles[name];
  forgetServer(after, profile.url);
  await writeProfiles(env, after);
  if (out.json) out.data({ name: next, ...changed });
  out.print(`Updated profile ${next} for ${changed.url}`);
}

/** Removes the certificate of an address unless a profile uses the address. */
function forgetServer(profiles: Profiles, url: string): void {
  const { origin } = new URL(url);
  if (!Object.values(profiles.profiles).some((each) => new URL(each.url).origin === origin))
    delete profiles.servers[origin];
}

async function list(context: Context): Promise<undefined> {
  const { out, env } = context;
  const { profiles, current, servers } = await readProfiles(env);
  const rows = Object.entries(profiles).map(([name, profile]) => ({
    name,
    ...profile,
    current: name === current,
    fingerprint: shownOrNull(servers[new URL(profile.url).origin]?.fingerprint),
  }));
  if (out.json) return out.data(rows);
  if (rows.length === 0)
    return out.note('There are no profiles yet. Create one: muster profile create NAME --url https://…');
  out.table(
    [
      {
        heading: 'NAME',
        text: (row) => row.name,
        paint: (text, row, { color }) => (row.current ? color.bold(text) : text),
      },
      { heading: 'CURRENT', text: (row) => (row.current ? 'yes' : '') },
      { heading: 'URL', text: (row) => row.url, flexible: true },
      { heading: 'KEY FILE', text: (row) => row.key_file, flexible: true },
      {
        heading: 'CERTIFICATE',
        text: (row) => row.fingerprint,
        flexible: true,
      },
    ],
    rows,
  );
}

const shownOrNull = (fingerprint: string | undefined): string | null =>
  fingerprint === undefined ? null : showFingerprint(fingerprint);

async function known(context: Context, name: string) {
  const profiles = await readProfiles(context.env);
  const profile: Profile | undefined = profiles.profiles[name];
  if (!profile) throw missingProfile(name, profiles);
  return { profiles, profile };
}

async function use(context: Context, name: string): Promise<undefined> {
  const { out, env } = context;
  const { profiles, profile } = await known(context, name);
  profiles.current = name;
  await writeProfiles(env, profiles);
  if (out.json) out.data({ name, ...profile });
  out.print(`Default profile: ${name}, ${profile.url}.`);
}

async function remove(context: Context, name: string): Promise<undefined> {
  const { out, env } = context;
  const { profiles, profile } = await known(context, name);
  delete profiles.profiles[name];
  forgetServer(profiles, profile.url);
  if (profiles.current === name) profiles.current = null;
  await writeProfiles(env, profiles);
  if (out.json) out.data({ removed: [name] });
  out.print(`Removed the profile ${name}.`);
}
