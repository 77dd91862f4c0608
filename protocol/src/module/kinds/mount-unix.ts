import { boolean, formatted, integer, text } from './field.ts';
import { allOf, type Check, maxLength, notEmpty, unixFile, withoutClosingSlash } from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** A mount point other than "/", which is mounted before any agent starts. */
const mountPoint: Check = (path) => unixFile(withoutClosingSlash(path));

const device: Check = allOf(notEmpty, maxLength(1000), (value) =>
  /^[^-#\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$/.test(value)
    ? undefined
    : 'must be a device, such as /dev/sdb1, UUID=…, LABEL=…, HOST:/PATH, a directory to bind, or a name such as tmpfs',
);

const type: Check = (value) => {
  if (value === 'swap') return 'must not be swap, which has no mount point';
  return /^[a-z0-9][a-z0-9._+-]{0,63}$/.test(value) ? undefined : 'must be a type of file system, such as ext4';
};

/** Options in one field of fstab(5). */
const options: Check = allOf(maxLength(4000), (value) =>
  /^[^\s\x00-\x1f\x7f]+$/.test(value)
    ? undefined
    : 'must be options joined by commas without spaces, such as ro,noexec',
);

export const mountUnixKind = {
  'mount-unix': defineKind({
    description: 'A mounted file system and its line in `/etc/fstab`',
    platforms: ['linux'],
    example:
      'path: /mnt\ndevice: tmpfs\ntype: tmpfs\noptions: "nosuid,nodev,size=64m"\ndump: 0\npass: 0\nmounted: true',
    required: { path: formatted('Mount point, an existing directory', mountPoint) },
    optional: {
      device: formatted(
        'A device, a label, a network address, a directory to bind, or the name of a virtual file system',
        device,
      ),
      type: formatted('Type of the file system, such as ext4; none for a bind mount', type),
      options: text('Options joined by commas; default in a new line: defaults', options),
      dump: integer('The fifth field of fstab, for dump(8); default in a new line: 0', 0, 9),
      pass: integer('The sixth field of fstab, the order of checks at boot; default in a new line: 0', 0, 9),
      mounted: boolean('Whether the file system is mounted now; default: true'),
      ensure,
    },
    presentNeeds: ['device', 'type'],
    identity: ({ path }) => withoutClosingSlash(String(path)),
  }),
};
