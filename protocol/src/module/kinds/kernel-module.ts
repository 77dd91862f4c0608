import { boolean, formatted, text } from './field.ts';
import { allOf, type Check, notEmpty, oneLine } from './format.ts';
import { defineKind, ensure } from './kind.ts';

/** The name of a kernel module, which the kernel limits to 55 bytes. */
const moduleName: Check = (name) =>
  /^[A-Za-z0-9_][A-Za-z0-9_-]{0,54}$/.test(name)
    ? undefined
    : 'must be the name of a kernel module, such as br_netfilter: letters, digits, "_", and "-"';

const moduleOptions: Check = allOf(notEmpty, oneLine, (options) =>
  options.trim() !== options || options.endsWith('\\')
    ? 'must not begin or end with a space, or end with a backslash'
    : undefined,
);

export const kernelModuleKind = {
  'kernel-module': defineKind({
    description: 'A kernel module, which is loaded immediately and at each boot',
    platforms: ['linux'],
    example: 'name: nf_conntrack\noptions: hashsize=131072',
    required: { name: formatted('Name of the module; `-` and `_` are the same', moduleName) },
    optional: {
      options: text('Options with which the module is loaded, as in modprobe.d(5)', moduleOptions),
      blacklist: boolean('Whether nothing may load the module; only with `ensure: absent`'),
      ensure,
    },
    // An option applies to a single module, and a module that must not be loaded has no options.
    exclusive: [['options', 'blacklist']],
    canonical: (name) => name.replaceAll('-', '_'),
  }),
};
