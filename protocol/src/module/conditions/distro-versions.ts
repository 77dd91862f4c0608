import { compareVersions } from '../../version-order.ts';
import type { Conditions } from '../document.ts';

/**
 * Formats of the versions that distributions report. Each is the `VERSION_ID` of its `/etc/os-release`, from the images
 * `rockylinux:9`, `almalinux:9`, `redhat/ubi9`, `oraclelinux:9`, `debian:12`, `fedora:40`, `ubuntu:22.04`,
 * `alpine:3.19`, `opensuse/leap:15.5`, and `quay.io/centos/centos:stream9`.
 * @see https://www.freedesktop.org/software/systemd/man/latest/os-release.html
 */
const forms: Readonly<Record<string, { readonly form: RegExp; readonly example: string }>> = {
  rocky: { form: /^\d+\.\d+$/, example: '9.4' },
  almalinux: { form: /^\d+\.\d+$/, example: '9.4' },
  rhel: { form: /^\d+\.\d+$/, example: '9.4' },
  ol: { form: /^\d+\.\d+$/, example: '9.4' },
  ubuntu: { form: /^\d+\.\d+$/, example: '22.04' },
  alpine: { form: /^\d+\.\d+\.\d+\S*$/, example: '3.19.1' },
  'opensuse-leap': { form: /^\d+\.\d+$/, example: '15.5' },
  debian: { form: /^\d+$/, example: '12' },
  fedora: { form: /^\d+$/, example: '40' },
  centos: { form: /^\d+$/, example: '9' },
};

/**
 * Returns the error for conditions that specify a distribution and only versions that do not exist for it.
 * @returns undefined if an agent may satisfy the conditions, or if the distribution is unknown
 */
export function impossibleVersion({ distro, version }: Conditions): string | undefined {
  const [distros, versions] = [distro?.in ?? [], version?.in ?? []];
  const [name] = distros;
  const wrong = versions[0];
  if (name === undefined || wrong === undefined) return undefined;
  const known = distros.map((one) => (Object.hasOwn(forms, one) ? forms[one] : undefined));
  if (known.some((form) => form === undefined || versions.some((one) => form.form.test(one)))) return undefined;
  const has = `no release of ${distros.slice(0, 5).join(' or ')} has the version "${wrong}": a version is such as "${known[0]?.example}"`;
  const major = /^\d+/.exec(wrong)?.[0];
  if (major === undefined) return has;
  // In versions such as `3.19.1`, the major part is `3.19`.
  const isMajor = major === wrong || known[0]?.form.test(major) === true;
  const next = wrong.replace(/\d+$/, (last) => String(Number(last) + 1));
  const range = compareVersions(wrong, next) < 0 ? `version: { from: "${wrong}", below: "${next}" }` : undefined;
  if (isMajor) return `${has}; write major: "${major}"`;
  return range === undefined ? has : `${has}; write ${range}`;
}
