/**
 * Scripts that dpkg runs when it installs, upgrades, removes, or purges a package with a systemd unit. As with
 * debhelper scripts, an upgrade does not enable a unit that an administrator disabled or masked, and each script may
 * run twice.
 */

export type ScriptName = 'postinst' | 'prerm' | 'postrm';

export interface UnitPackage {
  unit: string;
  /** A timer that is inactive until an administrator enables it. Removing the package stops the timer. */
  timer?: string;
  /** Message to print after a first installation. */
  welcome: string;
  /** Absolute paths of the files that the service creates. Only a purge removes them. */
  leftBehind: readonly string[];
  /** A configuration file that may contain secrets. Only root and this system group may read it. */
  closedConfig?: { path: string; group: string };
}

const head = '#!/bin/sh\nset -e\n';

/**
 * Restricts access to the configuration file, because version 0.1 installed it readable by all users, and dpkg keeps
 * the mode of an existing file. Keeps a stricter mode and a mode from dpkg-statoverride, which an administrator has
 * set.
 */
const closeConfig = ({ path, group }: NonNullable<UnitPackage['closedConfig']>) => `
    getent group ${group} > /dev/null || groupadd --system ${group}
    if [ -f ${path} ] && ! dpkg-statoverride --list ${path} > /dev/null; then
      case "$(stat --format %u:%g:%a ${path})" in
        0:0:640) chgrp ${group} ${path} ;;
        *[1-7])
          chgrp ${group} ${path}
          chmod g=r,o= ${path}
          ;;
      esac
    fi`;

const postinst = ({ unit, welcome, closedConfig }: UnitPackage) => `${head}
case "$1" in
  configure | abort-upgrade | abort-deconfigure | abort-remove)${closedConfig ? closeConfig(closedConfig) : ''}
    # Undoes the mask that an earlier removal may have left.
    deb-systemd-helper unmask ${unit} > /dev/null || true
    if deb-systemd-helper --quiet was-enabled ${unit}; then
      deb-systemd-helper enable ${unit} > /dev/null || true
    else
      # An administrator disabled the unit. Updates only its links.
      deb-systemd-helper update-state ${unit} > /dev/null || true
    fi
    if [ -d /run/systemd/system ]; then
      systemctl --system daemon-reload > /dev/null || true
      if [ -n "$2" ]; then action=restart; else action=start; fi
      deb-systemd-invoke "$action" ${unit} > /dev/null || true
    fi
    ;;
  *)
    echo "postinst called with unknown argument \\"$1\\"" >&2
    exit 1
    ;;
esac

if [ "$1" = configure ] && [ -z "$2" ]; then
  cat << 'END'
${welcome.trimEnd()}
END
fi
`;

const prerm = ({ unit, timer }: UnitPackage) => `${head}
# An upgrade restarts the unit after it has installed all files.
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  deb-systemd-invoke stop ${[unit, timer].filter((name) => name !== undefined).join(' ')} > /dev/null || true
fi
`;

const postrm = ({ unit, leftBehind }: UnitPackage) => `${head}
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
  systemctl --system daemon-reload > /dev/null || true
fi
if [ "$1" = purge ]; then
  if [ -x /usr/bin/deb-systemd-helper ]; then
    deb-systemd-helper purge ${unit} > /dev/null || true
  fi
  if [ -d /run/systemd/system ]; then
    systemctl reset-failed ${unit} > /dev/null 2>&1 || true
  fi
  # Also removes drop-ins that systemctl edit created.
  rm -rf --one-file-system /etc/systemd/system/${unit}.d
${leftBehind.map((path) => `  rm -rf --one-file-system ${path}`).join('\n')}
  rmdir --ignore-fail-on-non-empty /etc/muster 2> /dev/null || true
fi
`;

/** Returns the maintainer scripts for a package with a systemd unit, by name. */
export const maintainerScripts = (unit: UnitPackage): Record<ScriptName, string> => ({
  postinst: postinst(unit),
  prerm: prerm(unit),
  postrm: postrm(unit),
});
