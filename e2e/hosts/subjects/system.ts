import type { Subject } from './subject.ts';

/** A kernel parameter in the test host's own network namespace. */
const key = 'net.ipv4.ip_forward';
/** By default, `/proc/sys` is read-only on a test host. */
const writable = 'mount -o remount,bind,rw /proc/sys';
const state = `cat /proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv4/ip_local_port_range`;

export const systemSubjects: Subject[] = [
  {
    name: 'sysctl, created',
    prepare: writable,
    desired: { sysctl: { key, value: '1' } },
    changed: { sysctl: { key, value: '0' } },
    tamper: 'echo 0 > /proc/sys/net/ipv4/ip_forward',
    moved: ['value'],
    state,
  },
  {
    name: 'sysctl, with two numbers, also set by another file',
    prepare: `${writable}; echo 'net.ipv4.ip_local_port_range = 20000 30000' > /etc/sysctl.d/10-theirs.conf`,
    desired: { sysctl: { key: 'net/ipv4/ip_local_port_range', value: '10000  20000' } },
    changed: { sysctl: { key: 'net/ipv4/ip_local_port_range', value: '10001 20000' } },
    tamper: 'sed -i s/10000/10002/ /etc/sysctl.d/90-muster-net.ipv4.ip_local_port_range.conf',
    moved: ['persisted'],
    state,
  },
  {
    name: 'hostname',
    desired: { hostname: { name: 'web-1.example.org' } },
    changed: { hostname: { name: 'web-2' } },
    tamper: 'hostname by-hand; echo by-hand > /etc/hostname',
    moved: ['name', 'persisted'],
    state: 'cat /proc/sys/kernel/hostname',
  },
  {
    name: 'timezone',
    desired: { timezone: { name: 'Europe/Paris' } },
    changed: { timezone: { name: 'Asia/Tokyo' } },
    tamper: 'ln -sfn ../usr/share/zoneinfo/Africa/Accra /etc/localtime',
    moved: ['name'],
  },
  {
    name: 'timezone, previously a file instead of a link',
    prepare: 'rm /etc/timezone /etc/localtime; cp /usr/share/zoneinfo/Asia/Tokyo /etc/localtime',
    desired: { timezone: { name: 'Europe/Paris' } },
    changed: { timezone: { name: 'UTC' } },
    tamper: 'rm /etc/localtime',
    moved: ['name'],
  },
];
