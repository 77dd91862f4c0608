import { volatilePaths } from '../root-difference.ts';
import type { Subject } from '../subjects/subject.ts';

// The kernel of test hosts has no SELinux, so a directory tree replaces the SELinux file system. Three programs that
// refuse to work while SELinux is off have stand-ins: setsebool also sets the running value, setenforce sets the mode,
// and restorecon labels files with setfiles. semanage, setsebool -P, and setfiles are the real programs, with Debian's
// real policy and its store. setfiles does not cross mounts, and each file in an overlay looks like a mount, so /srv is
// a tmpfs.
export const ownSelinux = `mkdir -p /run/fs/cgroup /run/fs/selinux/booleans
mount --rbind /sys/fs/cgroup /run/fs/cgroup
mount --rbind /run/fs /sys/fs
mount -t tmpfs -o mode=755 tmpfs /srv
echo 0 > /sys/fs/selinux/enforce
echo '0 0' > /sys/fs/selinux/booleans/httpd_can_network_connect
echo '1 1' > /sys/fs/selinux/booleans/httpd_enable_cgi
cat > /usr/local/sbin/setsebool <<'END'
#!/bin/sh -eu
setting=$1
if [ "$1" = -P ]; then setting=$2; /usr/sbin/setsebool -P "$2"; fi
name=\${setting%=*}
[ -e "/sys/fs/selinux/booleans/$name" ]
echo "\${setting#*=} \${setting#*=}" > "/sys/fs/selinux/booleans/$name"
END
cat > /usr/local/sbin/setenforce <<'END'
#!/bin/sh -eu
echo "$1" > /sys/fs/selinux/enforce
END
cat > /usr/local/sbin/restorecon <<'END'
#!/bin/sh -eu
[ "$1" = -R ]
shift
options=
while [ "$1" != -- ]; do options="$options $1"; shift; done
shift
exec setfiles $options /etc/selinux/default/contexts/files/file_contexts "$@"
END
chmod 755 /usr/local/sbin/*
`;

const labels = 'setfiles /etc/selinux/default/contexts/files/file_contexts';
const local = '/var/lib/selinux/default/active';
/**
 * Shell text that prints running values, local records, and labels. The store's other files change on every
 * transaction.
 */
const state = `cat /sys/fs/selinux/enforce
grep -r . /sys/fs/selinux/booleans | sort
for name in booleans ports file_contexts; do grep -v '^#' ${local}/$name.local 2> /dev/null | grep . || true; done
python3 - <<'END'
import os
for top, _, names in sorted(os.walk('/srv')):
    for path in [top] + [os.path.join(top, name) for name in sorted(names)]:
        try: print(path, os.getxattr(path, 'security.selinux'))
        except OSError: print(path)
END`;
const volatile = [...volatilePaths, '/var/lib/selinux', '/etc/selinux/default'];
const slow = { state, volatile, slow: true };

export const selinuxSubjects: readonly Subject[] = [
  {
    ...slow,
    name: 'selinux-boolean, new, after another boolean was set',
    prepare: `${ownSelinux}setsebool -P httpd_enable_cgi=0`,
    desired: { 'selinux-boolean': { name: 'httpd_can_network_connect', value: true } },
    changed: { 'selinux-boolean': { name: 'httpd_can_network_connect', value: false } },
    tamper: 'setsebool httpd_can_network_connect=0',
    moved: ['value'],
  },
  {
    ...slow,
    name: 'selinux-port, new',
    prepare: `${ownSelinux}semanage port -a -t http_port_t -p tcp 9000-9010`,
    desired: { 'selinux-port': { port: '8888', protocol: 'tcp', type: 'http_port_t' } },
    changed: { 'selinux-port': { port: '8888', protocol: 'tcp', type: 'ssh_port_t' } },
    tamper: 'semanage port -d -p tcp 8888',
    moved: ['ensure', 'type'],
  },
  {
    ...slow,
    name: 'selinux-context, new, with files',
    prepare: `${ownSelinux}mkdir -p '/srv/web/a b'; touch '/srv/web/a b/c'; ${labels} /srv`,
    desired: {
      'selinux-context': { target: '/srv/web(/.*)?', type: 'httpd_sys_content_t', restore: ['/srv/web'] },
    },
    changed: {
      'selinux-context': { target: '/srv/web(/.*)?', type: 'httpd_sys_rw_content_t', restore: ['/srv/web'] },
    },
    tamper: `python3 -c "import os; os.setxattr('/srv/web/a b/c', 'security.selinux', b'system_u:object_r:tmp_t:s0\\0')"`,
    moved: ['labels'],
  },
  {
    name: 'selinux-mode, previously permissive',
    prepare: ownSelinux,
    desired: { 'selinux-mode': { mode: 'enforcing' } },
    changed: { 'selinux-mode': { mode: 'permissive', policy: 'default' } },
    tamper: 'setenforce 0; sed -i s/^SELINUX=.*/SELINUX=disabled/ /etc/selinux/config',
    moved: ['mode', 'running'],
    ...{ state, volatile },
  },
  {
    ...slow,
    name: 'selinux-boolean, previously with different running and boot-time values',
    prepare: `${ownSelinux}setsebool -P httpd_enable_cgi=0; setsebool httpd_enable_cgi=1`,
    desired: { 'selinux-boolean': { name: 'httpd_enable_cgi', value: true } },
    changed: { 'selinux-boolean': { name: 'httpd_enable_cgi', ensure: 'absent' } },
    tamper: 'setsebool -P httpd_enable_cgi=0',
    moved: ['value', 'persistent'],
  },
  {
    ...slow,
    name: 'selinux-port from the policy, with a local record',
    prepare: `${ownSelinux}semanage port -m -t ssh_port_t -p tcp 80`,
    desired: { 'selinux-port': { port: '80', protocol: 'tcp', type: 'http_port_t', range: 's0' } },
    changed: { 'selinux-port': { port: '80', protocol: 'tcp', ensure: 'absent' } },
    tamper: 'semanage port -m -t http_cache_port_t -p tcp 80',
    moved: ['type'],
  },
  {
    ...slow,
    name: 'selinux-context, absent, previously with a user',
    prepare: `${ownSelinux}mkdir /srv/a; semanage fcontext -a -f d -s user_u -t tmp_t /srv/a; ${labels} /srv`,
    desired: { 'selinux-context': { target: '/srv/a', file_type: 'directory', restore: ['/srv'], ensure: 'absent' } },
    changed: { 'selinux-context': { target: '/srv/a', file_type: 'directory', type: '<<none>>', restore: ['/srv'] } },
    tamper: 'semanage fcontext -a -f d -t var_t /srv/a',
    moved: ['ensure'],
  },
];
