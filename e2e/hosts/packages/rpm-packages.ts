/** Shell text that the roots with rpm share. */

/**
 * Moves rpm's database to its path on Fedora and openSUSE, because Debian's default is in the home directory of the
 * calling user.
 */
export const rpmDatabase = `
mkdir -p "$new/etc/rpm" "$new/srv/build"
echo '%_dbpath /var/lib/rpm' > "$new/etc/rpm/macros"
`;

/** Directory of the packages in the repository. */
export const rpms = '/srv/rpms/noarch';

export const installedRpms = "rpm -qa --queryformat '%{NAME} %{EVR}\\n' | sort";

/**
 * Builds packages in several versions. `spec NAME EPOCH VERSION MORE FILES` builds another one. A scriptlet of `slow` waits
 * until `/run/slow-waits` is deleted.
 */
export const buildRpms = `
spec() {
  cat > "$new/srv/build/it.spec" <<END
Name: $1
Epoch: $2
Version: $3
Release: 1
Summary: made for tests
License: none
BuildArch: noarch
$4
%description
Made for tests.
%install
mkdir -p %{buildroot}/etc/$1.d %{buildroot}/usr/share/$1
echo "$1 $3" > %{buildroot}/usr/share/$1/version
echo "setting = 1" > %{buildroot}/etc/$1.d/main.conf
%files
%dir /etc/$1.d
%dir /usr/share/$1
%config(noreplace) /etc/$1.d/main.conf
/usr/share/$1/version
$5
END
  chroot "$new" rpmbuild -bb --quiet --define '_topdir /srv/build' --define '_rpmdir /srv/rpms' /srv/build/it.spec
}
spec shell 0 1.0 'Provides: /bin/sh' ''
spec hello 0 1.0 'Requires: lib' ''
spec hello 0 1.1 'Requires: lib' ''
spec hello 1 0.9 'Requires: lib' ''
spec lib 0 2.0 '' ''
spec needs 0 1.0 'Requires: lib' ''
spec other 0 1.0 'Requires: lib' ''
spec unmet 0 1.0 'Requires: nowhere-to-be-found' ''
spec web 0 1.0 'Provides: webserver' ''
spec refuses 0 1.0 '' '%pre
echo I will not
exit 1'
spec grumbles 0 1.0 '' '%post
echo I would rather not
exit 1'
spec engine 0 1.0 '' ''
spec engine 0 2.0 '' ''
spec slow 0 1.0 '' '%post
while test -e /run/slow-waits; do sleep 0.05; done'
`;
