import { formatted, list } from '../field.ts';
import type { CombinationFault } from '../kind.ts';

/** The capabilities of a file, with entries in the form of cap_from_text(3). */

/** The capabilities in capabilities(7), without `cap_`. */
const names = new Set(
  'audit_control audit_read audit_write block_suspend bpf checkpoint_restore chown dac_override dac_read_search fowner fsetid ipc_lock ipc_owner kill lease linux_immutable mac_admin mac_override mknod net_admin net_bind_service net_broadcast net_raw perfmon setfcap setgid setpcap setuid sys_admin sys_boot sys_chroot sys_module sys_nice sys_pacct sys_ptrace sys_rawio sys_resource sys_time sys_tty_config syslog wake_alarm'.split(
    ' ',
  ),
);
const form = 'such as cap_net_raw=ep or cap_net_raw+ep';
/** Maximum number of capabilities. getcap describes more than half of all capabilities by those that are missing. */
const maxCapabilities = 16;

const pattern = /^(cap_[a-z_]+(?:,cap_[a-z_]+)*)[+=]([eip]{1,3})$/;

/** Splits an entry into its capabilities and its flags in their order; null for an entry with another form. */
function partsOf(text: string): { capabilities: string[]; flags: string } | null {
  const [, capabilities = '', flags = ''] = pattern.exec(text) ?? [];
  if (flags === '' || /(.).*\1/.test(flags)) return null;
  const sorted = [...'eip'].filter((flag) => flags.includes(flag)).join('');
  return { capabilities: capabilities.split(','), flags: sorted };
}

function faultOf(text: string): string | undefined {
  const parts = partsOf(text);
  if (parts === null) return `must be capabilities with the flags e, i, and p, ${form}`;
  const unknown = parts.capabilities.find((name) => !names.has(name.slice('cap_'.length)));
  if (unknown !== undefined) return `${unknown} is not a capability; capabilities(7) lists them`;
  return parts.flags === 'e' ? 'must have the flag p or i, without which e has no effect' : undefined;
}

export const capabilities = list(
  'All capabilities of the file, such as cap_net_bind_service=ep; an empty list for none; without this field, a file loses them when its content or owner changes',
  formatted('Capabilities with their flags', faultOf, { pattern: '^cap_[a-z_]+(,cap_[a-z_]+)*[+=][eip]{1,3}$' }),
  { atMost: maxCapabilities },
);

const entriesOf = (text: string): string[] => {
  const parts = partsOf(text);
  return parts === null ? [text] : parts.capabilities.map((name) => `${name}=${parts.flags}`);
};

/** Writes one entry for each capability, such as `cap_net_raw=ep`, sorted. */
export function normaliseCapabilities(body: Record<string, unknown>): void {
  if (Array.isArray(body.capabilities))
    body.capabilities = [...new Set(body.capabilities.flatMap((entry) => entriesOf(String(entry))))].sort();
}

/** Returns an error for each entry that the kernel cannot store with the entries before it. */
export function capabilityFaults(body: Readonly<Record<string, unknown>>): CombinationFault[] {
  if (!Array.isArray(body.capabilities)) return [];
  const entries = body.capabilities.map((entry) => partsOf(String(entry)));
  const isEffective = entries.find((parts) => parts !== null)?.flags.startsWith('e');
  const seen = new Map<string, string>();
  if (entries.flatMap((parts) => parts?.capabilities ?? []).length > maxCapabilities)
    return [{ path: ['capabilities'], message: `must have at most ${maxCapabilities} capabilities` }];
  return entries.flatMap((parts, index): CombinationFault[] => {
    if (parts === null) return [];
    const path = ['capabilities', String(index)];
    const twice = parts.capabilities.find((name) => (seen.get(name) ?? parts.flags) !== parts.flags);
    for (const name of parts.capabilities) seen.set(name, parts.flags);
    if (twice !== undefined) return [{ path, message: `${twice} has two entries in \`capabilities\`` }];
    if (parts.flags.startsWith('e') === isEffective) return [];
    return [{ path, message: 'either all capabilities of a file have the flag e, or none has it' }];
  });
}
