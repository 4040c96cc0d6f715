"""Writes databases as SQL: dump.py SOCKET PASSWORD_FILE DATABASE ...

Debian's mariadb-client-core has no mariadb-dump, and this needs little of it: tables and rows as the services' migrations
leave them. The password, which Nova keeps within its cells' addresses, becomes a placeholder.
"""
import getpass
import sys

import pymysql
from pymysql.converters import escape_item

PLACEHOLDER = '@PASSWORD@'


def main(socket, password_file, databases):
    with open(password_file) as file:
        password = file.read().strip()
    connection = pymysql.connect(unix_socket=socket, user=getpass.getuser(), charset='utf8mb4')
    cursor = connection.cursor()
    # Tables are sorted by name, not by reference.
    print('SET foreign_key_checks = 0, unique_checks = 0, autocommit = 0;')
    for database in databases:
        print(f'USE `{database}`;')
        cursor.execute(f'USE `{database}`')
        cursor.execute("SHOW FULL TABLES WHERE Table_type = 'BASE TABLE'")
        for table in [row[0] for row in cursor.fetchall()]:
            cursor.execute(f'SHOW CREATE TABLE `{table}`')
            print(cursor.fetchone()[1] + ';')
            cursor.execute(f'SELECT * FROM `{table}`')
            rows = ['(' + ','.join(escape_item(value, 'utf8mb4') for value in row) + ')' for row in cursor]
            if rows:
                print(f'INSERT INTO `{table}` VALUES\n' + ',\n'.join(rows).replace(password, PLACEHOLDER) + ';')
    print('COMMIT;')


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
