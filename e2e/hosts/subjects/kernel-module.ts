import type { Subject } from './subject.ts';

/**
 * Shell text that installs stand-ins for the kmod programs, with their own list of modules. All test hosts share the
 * kernel of the machine that runs the tests, so they must not change its modules.
 */
export const ownModules = `printf '%s\\n' 'br_netfilter 1 0' 'bridge 1 1 br_netfilter' > /run/modules
cat > /usr/local/sbin/lsmod <<'END'
#!/bin/sh
echo 'Module Size Used by'; cat /run/modules
END
cat > /usr/local/sbin/modprobe <<'END'
#!/bin/sh -eu
case $1 in
  -r) sed -i "/^$3 /d; s/ 1 $3$/ 0/" /run/modules ;;
  --) echo "$2 1 0" >> /run/modules; [ "$2" != br_netfilter ] || sed -i 's/^bridge.*/bridge 1 1 br_netfilter/' /run/modules ;;
esac
END
chmod 755 /usr/local/sbin/lsmod /usr/local/sbin/modprobe
`;
const state = 'sort /run/modules';

export const kernelModuleSubjects: readonly Subject[] = [
  {
    name: 'kernel-module, not loaded',
    prepare: ownModules,
    desired: { 'kernel-module': { name: 'nf-conntrack', options: 'hashsize=4096' } },
    changed: { 'kernel-module': { name: 'nf-conntrack', options: 'hashsize=8192' } },
    tamper: `sed -i s/4096/1024/ /etc/modprobe.d/90-muster-nf_conntrack.conf; modprobe -r -- nf_conntrack`,
    moved: ['loaded', 'options'],
    state,
  },
  {
    name: 'kernel-module, absent, previously loaded',
    prepare: ownModules,
    desired: { 'kernel-module': { name: 'br_netfilter', blacklist: true, ensure: 'absent' } },
    changed: { 'kernel-module': { name: 'br_netfilter' } },
    tamper: 'rm /etc/modprobe.d/90-muster-br_netfilter.conf; modprobe -- br_netfilter',
    moved: ['loaded', 'blacklist'],
    state,
  },
];
