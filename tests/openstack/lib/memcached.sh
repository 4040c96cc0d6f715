# memcached: the cache of keystone and of the token validation.

memcached_start() { start memcached memcached -l "$IP" -p 11211 -m 128 -u "$USER_NAME" -c 4096; }
