import { formatted, list } from '../field.ts';

/** The capabilities of a program file that setcap(8) sets. */

/** Capabilities of Linux 6, without `cap_`. See capabilities(7). */
const known = new Set(
  `audit_control audit_read audit_write block_suspend bpf checkpoint_restore chown dac_override dac_read_search fowner
fsetid ipc_lock ipc_owner kill lease linux_immutable mac_admin mac_override mknod net_admin net_bind_service
net_broadcast net_raw perfmon setfcap setgid setpcap setuid syslog sys_admin sys_boot sys_chroot sys_module sys_nice
sys_pacct sys_ptrace sys_rawio sys_resource sys_time sys_tty_config wake_alarm`.split(/\s+/),
);
const names = [...known].map((name) => `cap_${name}`);

/** Fewer than all, for which the programs have another notation. */
const maximum = 20;

export const capabilities = list(
  'Capabilities that the program in the file gets, permitted and effective, such as cap_net_bind_service; an empty list for none',
  formatted(
    'A capability',
    (text) => (names.includes(text) ? undefined : 'must be a capability of Linux in lower case, such as cap_net_raw'),
    { pattern: `^cap_(${[...known].join('|')})$`, proposals: names },
  ),
  { atMost: maximum },
);

export function normaliseCapabilities(body: Record<string, unknown>): void {
  if (Array.isArray(body.capabilities)) body.capabilities = [...new Set(body.capabilities.map(String))].sort();
}
