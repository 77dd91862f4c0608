# 50 packages that are there, 50 units that are enabled and run.  puppet apply --detailed-exitcodes machine.pp
$packages = split(file('/var/tmp/converge/packages'), "\n")
$units = split(file('/var/tmp/converge/units'), "\n")
package { $packages: ensure => installed }
service { $units: ensure => running, enable => true }
