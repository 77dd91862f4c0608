import { arch, cpus, hostname, networkInterfaces, release, totalmem } from 'node:os';
import { limits } from '@muster/protocol/wire';
import type { Clock } from '../../../lib/src/clock.ts';
import { exists, linkTarget, readText } from '../host/read-system.ts';
import { runningMode } from '../host/selinux.ts';
import { customFacts } from './custom-facts.ts';
import { addressesOf, defaultRoute4, defaultRoute6, fullyQualifiedName, nameOfInterface } from './network-facts.ts';
import { familyOf, systemdVersion } from './system-facts.ts';

/** Collects the machine's attributes. All values are strings. */

export interface FactOptions {
  /** Directory of YAML files and programs that add attributes; absent if there is none. */
  factsDir?: string;
  /** Overrides the machine's hostname. */
  hostname?: string | null;
  clock: Clock;
  /** Called with each invalid file and its problem. All other files are still used. */
  warn(file: string, problem: string): void;
  /** Directory that contains /etc, /proc, /run, and /sys, for tests. */
  root?: string;
}

/** The orchestrator's limits. The orchestrator refuses larger attributes. */
const { maxAttributes, maxAttributeLength: maxValue, attributesBytes } = limits;
const maxKey = 128;
/** Maximum number of names in the warning about omitted attributes. */
const maxNamed = 5;

/**
 * Built-in attributes that custom ones may replace. Version 0.1 did not report them, so machines may have custom
 * attributes with these names.
 */
const replaceable: ReadonlySet<string> = new Set([
  ...['family', 'major', 'codename', 'fqdn', 'addresses', 'default_address'],
  ...['default_interface', 'default_ipv4_address', 'default_ipv4_interface'],
  ...['default_ipv6_address', 'default_ipv6_interface'],
  ...['selinux', 'systemd_version', 'efi', 'container'],
]);

/**
 * Collects the attributes. Files in `factsDir` can neither replace nor displace the other built-in attributes, because
 * modules choose variants by these attributes.
 */
export async function gatherFacts(options: FactOptions): Promise<Record<string, string>> {
  const { root = '', factsDir } = options;
  const facts = builtInFacts(root, options.hostname ?? hostname());
  if (factsDir === undefined) return facts;
  const sizeOf = (key: string, value: string) => Buffer.byteLength(JSON.stringify([key, value]));
  let count = Object.keys(facts).length;
  let bytes = Object.entries(facts).reduce((sum, [key, value]) => sum + sizeOf(key, value), 0);
  const omitted: string[] = [];
  const custom = await customFacts(factsDir, options.clock, options.warn);
  for (const [key, value] of Object.entries(custom)) {
    if (replaceable.has(key) && Object.hasOwn(facts, key)) facts[key] = value.slice(0, maxValue);
    else if (Object.hasOwn(facts, key)) options.warn(factsDir, `${key} is a built-in attribute; rename the custom one`);
    else if (key === '' || key.length > maxKey)
      options.warn(factsDir, `the name "${key.slice(0, 40)}…" must have 1 to ${maxKey} characters`);
    else {
      const cut = value.slice(0, maxValue);
      const size = sizeOf(key, cut);
      if (count >= maxAttributes || bytes + size > attributesBytes) {
        omitted.push(key);
        continue;
      }
      facts[key] = cut;
      count++;
      bytes += size;
    }
  }
  if (omitted.length > 0)
    options.warn(
      factsDir,
      `${omitted.length} attributes were omitted; the maximum is ${maxAttributes} attributes and ${attributesBytes / 1024} KiB: ${omitted.slice(0, maxNamed).join(', ')}${omitted.length > maxNamed ? ', …' : ''}`,
    );
  return facts;
}

/**
 * Collects the built-in attributes.
 * @param root directory to use instead of /, for tests
 */
export function builtInFacts(root: string, name = hostname()): Record<string, string> {
  const { distro, version, like, codename } = osRelease(root);
  const interfaces = networkInterfaces();
  const route4 = defaultRoute4(root, interfaces);
  const route6 = defaultRoute6(root, interfaces);
  const route = route4 ?? route6;
  const facts: Record<string, string | null> = {
    platform: process.platform === 'darwin' ? 'macos' : process.platform === 'win32' ? 'windows' : process.platform,
    distro,
    version,
    family: familyOf(distro, like),
    major: version?.split('.')[0] ?? null,
    codename,
    arch: architectureOf(arch()),
    init_system: initSystem(root),
    systemd_version: systemdVersion(root),
    hostname: name,
    fqdn: fullyQualifiedName(root, name),
    addresses: addressesOf(interfaces),
    default_address: route?.address ?? null,
    default_interface: nameOfInterface(route),
    default_ipv4_address: route4?.address ?? null,
    default_ipv4_interface: nameOfInterface(route4),
    default_ipv6_address: route6?.address ?? null,
    default_ipv6_interface: nameOfInterface(route6),
    kernel: release(),
    cpus: String(cpus().length),
    memory_bytes: String(totalmem()),
    virtualization: virtualization(root),
    container: String(containerKind(root) !== null),
    selinux: runningMode(root),
    efi: String(exists(`${root}/sys/firmware/efi`)),
    timezone: timezone(root),
  };
  return Object.fromEntries(
    Object.entries(facts).flatMap(([key, value]) =>
      value === null || value === '' ? [] : [[key, value.slice(0, maxValue)]],
    ),
  );
}

/** Returns the name that modules use for an architecture. */
export function architectureOf(node: string): string {
  const names: Readonly<Record<string, string>> = { x64: 'x86_64', arm64: 'aarch64', arm: 'armv7' };
  return names[node] ?? node;
}

interface OsRelease {
  distro: string | null;
  version: string | null;
  /** Names of the distributions from which this one is derived, closest first. */
  like: string[];
  codename: string | null;
}

/** Reads os-release(5), whose values may be quoted as in a shell. */
export function osRelease(root: string): OsRelease {
  const text = readText(`${root}/etc/os-release`) ?? readText(`${root}/usr/lib/os-release`) ?? '';
  const field = (name: string): string | null => {
    const value = new RegExp(`^${name}=(.*)$`, 'm').exec(text)?.[1]?.trim();
    if (value === undefined) return null;
    return value.replace(/^(["'])(.*)\1$/, '$2').replace(/\\(.)/g, '$1');
  };
  return {
    distro: field('ID')?.toLowerCase() ?? null,
    version: field('VERSION_ID'),
    like: (field('ID_LIKE') ?? '').toLowerCase().split(/\s+/).filter(Boolean),
    codename: field('VERSION_CODENAME'),
  };
}

/** Detects the running init system or, if none runs, the installed one. */
export function initSystem(root: string): string | null {
  if (process.platform === 'darwin') return 'launchd';
  if (process.platform === 'win32') return 'scm';
  if (exists(`${root}/run/systemd/system`)) return 'systemd';
  if (exists(`${root}/run/openrc`)) return 'openrc';
  const first = readText(`${root}/proc/1/comm`)?.trim() ?? '';
  if (first === 'systemd') return 'systemd';
  if (first.startsWith('openrc')) return 'openrc';
  // A container may run no init system. In that case, the installed one is reported.
  if (exists(`${root}/usr/lib/systemd/systemd`) || exists(`${root}/lib/systemd/systemd`)) return 'systemd';
  if (exists(`${root}/sbin/openrc`) || exists(`${root}/usr/sbin/openrc`)) return 'openrc';
  if (exists(`${root}/etc/init.d`)) return 'init.d';
  return null;
}

/** Returns the type of the container, as far as the system reveals it; null outside of a container. */
function containerKind(root: string): string | null {
  if (exists(`${root}/.dockerenv`)) return 'docker';
  if (exists(`${root}/run/.containerenv`)) return 'podman';
  return readText(`${root}/run/systemd/container`)?.trim() || null;
}

/** Returns the type of the container or hypervisor, as far as the system reveals it; `none` on hardware. */
export function virtualization(root: string): string {
  const container = containerKind(root);
  if (container !== null) return container;
  const maker = `${readText(`${root}/sys/class/dmi/id/sys_vendor`) ?? ''} ${readText(`${root}/sys/class/dmi/id/product_name`) ?? ''}`;
  const makers: readonly (readonly [RegExp, string])[] = [
    [/KVM/i, 'kvm'],
    [/QEMU/i, 'qemu'],
    [/VMware/i, 'vmware'],
    [/VirtualBox|innotek/i, 'virtualbox'],
    [/Xen/i, 'xen'],
    [/Amazon EC2/i, 'amazon'],
    [/Google/i, 'google'],
    [/Virtual Machine/i, 'hyperv'],
  ];
  // QEMU's firmware does not reveal KVM, and minimal machines have no firmware tables, so the clock sources are checked too.
  const clocks = readText(`${root}/sys/devices/system/clocksource/clocksource0/available_clocksource`) ?? '';
  const onKvm = /\bkvm-clock\b/.test(clocks);
  for (const [pattern, name] of makers) if (pattern.test(maker)) return name === 'qemu' && onKvm ? 'kvm' : name;
  if (!/^flags\s*:.*\bhypervisor\b/m.test(readText(`${root}/proc/cpuinfo`) ?? '')) return 'none';
  return onKvm ? 'kvm' : 'unknown';
}

export function timezone(root: string): string {
  const name = /zoneinfo\/(?:posix\/|right\/)?(.+)$/.exec(linkTarget(`${root}/etc/localtime`) ?? '')?.[1];
  if (name !== undefined) return name;
  // If /etc/localtime is not a link, Debian stores the name in /etc/timezone.
  return readText(`${root}/etc/timezone`)?.trim() || 'UTC';
}
